#!/usr/bin/env bash
# Restore a backup into an empty database, and check it: deploy/restore.sh FILE [EXPORT...]
#
# The database is that of DITHER_DATABASE_URL, else a new embedded one in DITHER_DATA_DIR. It must be empty. Afterwards it has the
# schema of this version, and `dither audit` has found the ledger clean. With exports (`dither audit export`, written after the
# backup was made), `dither restore-check` has retired the studies of which the backup has forgotten charges. Bring the subject
# key yourself.
set -euo pipefail

file=${1:?usage: restore.sh FILE [EXPORT...]}
shift

tables=$(dither postgres --create psql -XtAc "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
if [ "$tables" != 0 ]; then
    echo "the database is not empty: nothing was restored" >&2
    exit 1
fi
# All of it, or nothing. A newer pg_restore sets what PostgreSQL has had since 17 only.
dither postgres pg_restore --no-owner --no-privileges --file=- < "$file" \
    | sed '1,40{/^SET transaction_timeout = 0;$/d}' \
    | dither postgres psql -Xq --single-transaction --set=ON_ERROR_STOP=1 > /dev/null
dither migrate
# Of the server's own tables only a superuser may: no warning for each.
dither postgres psql -Xqc "SET client_min_messages = error" -c "ANALYZE"
dither audit
if [ $# -gt 0 ]; then
    dither restore-check "$@"
else
    echo "releases made after this backup are forgotten: run dither restore-check EXPORT before the service starts" >&2
fi
