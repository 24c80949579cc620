// Words and numbers for people.
const numbers = new Intl.NumberFormat("en-US");

export const number = (value) => (value === null || value === undefined ? "–" : numbers.format(value));

export function plural(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

// A name that may be missing, or longer than anybody reads.
export function nameOf(job) {
  return job.name || job.key || job.job_id || "unnamed";
}

export function cut(text, longest = 160) {
  const found = String(text ?? "");
  return found.length > longest ? `${found.slice(0, longest - 1)}…` : found;
}

// A URL as it may be shown.
function withoutPassword(url) {
  return url.replace(/^([^:/?#]*:\/\/[^:/?#]*):[^/?#]*@/, "$1:***@");
}

export function targetText(target) {
  if (!target) return "";
  switch (target.type) {
    case "http":
      return `${target.method || "POST"} ${withoutPassword(target.url)}`;
    case "python":
      return target.function;
    case "shell":
      return (target.argv || []).join(" ");
    default:
      return target.type || "";
  }
}

export function pretty(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

// One word for a POSIX shell.
export function quoted(text) {
  return `'${String(text).replaceAll("'", `'\\''`)}'`;
}

export function scheduleText(job) {
  if (job.cron) return job.cron;
  if (job.every) return `every ${job.every}`;
  if (job.after) return "after others";
  return "once";
}
