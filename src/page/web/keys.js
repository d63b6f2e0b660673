// Keys: one letter each, and none while somebody types.

const TYPING = ['INPUT', 'TEXTAREA', 'SELECT'];

// `keys` maps the name of a key to a function; what it returns as false leaves the key to the browser.
function onKeys(keys) {
  addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (TYPING.includes(event.target.tagName)) return;
    if (document.querySelector('dialog[open]:not(#detail)')) return;
    const act = keys[event.key];
    if (act && act(event) !== false) event.preventDefault();
  });
}

// Search fields: Escape empties and leaves, Enter and the down key go to what was found.
function onSearch(input, changed, leave) {
  input.addEventListener('input', () => changed(input.value));
  input.addEventListener('keydown', event => {
    if (event.key === 'Escape') { input.value = ''; changed(''); }
    if (event.key !== 'Escape' && event.key !== 'Enter' && event.key !== 'ArrowDown') return;
    event.preventDefault();
    input.blur();
    leave();
  });
}

function prepareHead() {
  document.documentElement.classList.add('js');
  byId('help-open').onclick = () => byId('help').showModal();
  byId('command-copy').onclick = () => copy(byId('command').textContent, 'the command');
  for (const dialog of document.querySelectorAll('dialog')) {
    // A click beside a dialog closes it.
    dialog.addEventListener('click', event => { if (event.target === dialog) dialog.close(); });
  }
}
