// The large view: the thumbnail at once, the original over it as soon as the browser has it.

const SEEN_BY_BROWSERS = ['jpeg', 'jpg', 'png', 'webp', 'gif', 'bmp', 'ico'];
// More than that may take the browser down with it.
const MOST_PIXELS = 80e6;

function largePicture(image, root) {
  const frame = el('div', { class: 'large' }, picture(image, 0, shown(fileName(image.path))));
  frame.firstChild.classList.add('small');
  const pixels = image.width * image.height;
  const safe = !image.fault && pixels > 0 && pixels <= MOST_PIXELS && SEEN_BY_BROWSERS.includes(image.format);
  if (root === undefined || !safe) return frame;
  const original = el('img', { src: address(root, image.path), alt: shown(fileName(image.path)) });
  // Where the pictures are elsewhere the thumbnail stays.
  original.decode().then(() => frame.replaceChildren(original), () => {});
  return frame;
}

function facts(pairs) {
  const list = el('dl', { class: 'table' });
  for (const [term, what] of pairs) {
    if (what !== undefined && what !== null && what !== '') list.append(el('dt', {}, term), el('dd', {}, shown(what)));
  }
  return list;
}

function openOriginal(image, root) {
  const to = address(root, image.path);
  return to && el('a', { href: to, target: '_blank', rel: 'noopener' }, 'Open original');
}

// Shows the dialog with this inside; focus stays on the same button from image to image.
function fillDialog(dialog, ...inside) {
  const held = dialog.contains(document.activeElement) ? document.activeElement.dataset.key : 'next';
  dialog.replaceChildren(...inside);
  if (!dialog.open) dialog.showModal();
  const button = dialog.querySelector(`[data-key="${held || 'next'}"]:not(:disabled)`) || dialog.querySelector('button');
  if (button) button.focus();
}
