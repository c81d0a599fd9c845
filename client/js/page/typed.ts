/** Numbers as people type them; `app.dashboard.typed` of the service reads them the same way. */

export type Mark = "." | ",";

/**
 * What people mean by a text, with a point before decimals; null where it may be thousands or decimals.
 *
 * @param mark What stands before decimals in the language of the page.
 */
export function typed(text: string, mark: Mark): string | null {
  const own = text.replace(/[ '\u2019\u00a0\u202f]/g, "").replace(/\u2212/g, "-");
  const other: Mark = mark === "." ? "," : ".";
  for (const [decimal, group] of [[mark, other], [other, mark]] as const) {
    if (grouped(group, decimal).test(own)) return own.replaceAll(group, "").replace(decimal, ".");
  }
  if (groups(other).test(own)) return null;
  if (decimals(other).test(own)) return own.replace(other, ".");
  return own.includes(other) || own.split(mark).length > 2 ? own : own.replace(mark, ".");
}

function grouped(group: Mark, decimal: Mark): RegExp {
  return new RegExp(`^[+-]?[1-9]\\d{0,2}([${group}]\\d{3})+[${decimal}]\\d+$`);
}

function groups(group: Mark): RegExp {
  return new RegExp(`^[+-]?[1-9]\\d{0,2}([${group}]\\d{3})+$`);
}

function decimals(decimal: Mark): RegExp {
  return new RegExp(`^[+-]?(0[${decimal}]\\d+|\\d+[${decimal}](\\d{1,2}|\\d{4,}))$`);
}
