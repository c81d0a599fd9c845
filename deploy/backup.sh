#!/usr/bin/env bash
# Back up a running service: deploy/backup.sh DIRECTORY
#
# The database is that of DITHER_DATABASE_URL, else the embedded one in DITHER_DATA_DIR. Needs `dither` on PATH; the tools of
# PostgreSQL come with it, or are those in DITHER_POSTGRES_BIN, which TLS needs. Writes DIRECTORY/dither-YYYYMMDDTHHMMSSZ.dump,
# complete or not at all, and prints its path. The subject key is not in it: keep a copy of that somewhere else.
set -euo pipefail
umask 077

directory=${1:?usage: backup.sh DIRECTORY}
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)

file="$directory/dither-$(date -u +%Y%m%dT%H%M%SZ).dump"
partial=$(mktemp "$directory/.partial.XXXXXX")
trap 'rm -f "$partial"' EXIT
# One snapshot of everything, while the service goes on. This user writes the output, whichever user runs the database.
dither postgres pg_dump --format=custom --no-owner --no-privileges > "$partial"
sync "$partial"
ln "$partial" "$file"
echo "$file"
