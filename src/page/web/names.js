'use strict';
// Names: as people read them, as addresses, as lines of a list.

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
// What prep spells %XX in tables: control characters, bytes outside ASCII that are no UTF-8, and % itself.
const SPELLED = /(%(?:[01][0-9A-F]|7F|[89A-F][0-9A-F]|25))/;

// As on terminals, what cannot be seen or turns the text around is spelled out.
function shown(text) {
  return String(text).replace(HIDDEN, c => `\\u{${c.charCodeAt(0).toString(16)}}`);
}

function fileName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

// Keeps both ends of a long name: numbers stand at the end.
function elided(text, most) {
  const chars = [...text];
  if (chars.length <= most) return text;
  return chars.slice(0, most >> 1).join('') + '…' + chars.slice(chars.length - (most >> 1) + 1).join('');
}

// The address of a picture as seen from this page. Always relative to it or absolute on the disk: a name such as
// `https://…` or `//host/…` stays a name.
function address(root, path) {
  if (root === undefined) return null;
  const full = root && !path.startsWith('/') ? `${root}/${path}` : path;
  const escape = (piece, at) => at % 2 ? piece : encodeURIComponent(piece);
  const parts = full.split('/').map(part => part.split(SPELLED).map(escape).join(''));
  return full.startsWith('/') ? parts.join('/').replace(/^\/*/, '/') : './' + parts.join('/');
}

function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
}

function size(bytes) {
  if (bytes < 1000) return `${bytes} B`;
  const power = Math.min(3, Math.floor(Math.log10(bytes) / 3));
  return `${(bytes / 1000 ** power).toPrecision(3)} ${['', 'kB', 'MB', 'GB'][power]}`;
}

// A cell of a CSV file (RFC 4180). What a spreadsheet would run gets a `'`, which `prep apply` takes off again.
function quoted(text) {
  const cell = /^'*[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell;
}
