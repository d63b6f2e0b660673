// Elements. Text goes in as text, attributes one by one: nothing here reads markup.

const byId = id => document.getElementById(id);

// el('button', {class: 'x', onclick: f}, 'text', child): attributes that are null or false are left out.
function el(tag, attributes, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...inside.filter(child => child !== null && child !== undefined));
  return element;
}

function button(text, onclick, attributes) {
  return el('button', { type: 'button', onclick, ...attributes }, text);
}

const DATA = JSON.parse(byId('data').textContent);
// One a line; the first line is empty.
const THUMBS = byId('thumbs').textContent.split('\n');
const KINDS = { '/': 'jpeg', i: 'png', U: 'webp', R: 'gif' };

// The small picture of an image, or words where there is none.
function picture(image, height, alt) {
  const base64 = image.thumb === undefined ? '' : THUMBS[image.thumb + 1];
  const made = base64
    ? el('img', { class: 'pic', alt: alt || '', src: `data:image/${KINDS[base64[0]] || 'jpeg'};base64,${base64}` })
    : el('span', { class: 'pic blank' }, image.fault ? shown(image.fault) : 'no thumbnail');
  if (height) made.style.height = `${height}px`;
  return made;
}

let toastEnds = 0;
function say(text) {
  byId('toast').textContent = text;
  clearTimeout(toastEnds);
  toastEnds = setTimeout(() => { byId('toast').textContent = ''; }, 2500);
}

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
    say(`Copied ${what}`);
  } catch {
    say('The browser does not let this page copy');
  }
}

function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  el('a', { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
