// What the server says. Everything is text or numbers, and is shown as text.

async function answer(response) {
  if (response.status === 204) return null;
  const found = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(found.error || `the server said ${response.status}`);
  return found;
}

export async function get(path, asked = {}) {
  const query = new URLSearchParams(asked).toString();
  return answer(await fetch(query ? `${path}?${query}` : path));
}

export async function post(path, sent = {}) {
  return answer(await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(sent),
  }));
}

export const by = id => document.getElementById(id);

// An element with text in it; children are elements or text, and never HTML.
export function make(tag, options = {}, ...children) {
  const found = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") found.className = value;
    else if (name.startsWith("on")) found.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) found.setAttribute(name, value);
  }
  found.append(...children.filter(child => child !== null && child !== undefined));
  return found;
}

export function percent(share) {
  const value = 100 * share;
  if (value > 99.9 && share < 1) return ">\u202f99.9\u00a0%";
  if (value < 0.1 && share > 0) return "<\u202f0.1\u00a0%";
  return `${value.toFixed(value < 10 || (value >= 99.5 && share < 1) ? 1 : 0)}\u00a0%`;
}
