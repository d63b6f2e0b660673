// A browser without a network, and what every page is held to.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const fromTarget = createRequire(pathToFileURL(`${process.cwd()}/target/pages/package.json`));
const { chromium } = fromTarget('playwright-core');
const AXE = readFileSync(fromTarget.resolve('axe-core/axe.min.js'), 'utf8');
export const FOLDER = `${process.cwd()}/target/pages/data`;
export const SHOTS = `${process.cwd()}/target/pages`;

let checks = 0;
export function check(holds, what) {
  checks++;
  if (!holds) throw new Error(`not so: ${what}`);
}

export function equal(is, want, what) {
  check(is === want, `${what}\n  is   ${JSON.stringify(is)}\n  want ${JSON.stringify(want)}`);
}

export async function withBrowser(run) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
  try {
    await run(browser);
  } finally {
    await browser.close();
  }
}

// Opens a page of the folder in a context of its own. Whatever it asks of a network, prints as an error or runs of the
// names in its data ends the test.
export async function open(browser, name, { scheme = 'light', width = 1280, height = 800, script = true, hash = '' } = {}) {
  const context = await browser.newContext({ offline: true, colorScheme: scheme, viewport: { width, height }, javaScriptEnabled: script, acceptDownloads: true });
  const page = await context.newPage();
  const seen = { requests: [], errors: [] };
  page.on('request', request => {
    if (!/^(data|blob):/.test(request.url())) seen.requests.push(request.url());
  });
  page.on('pageerror', error => seen.errors.push(error.stack));
  page.on('console', message => { if (message.type() === 'error') seen.errors.push(message.text()); });
  page.on('dialog', dialog => dialog.accept());
  const address = pathToFileURL(`${FOLDER}/${name}`).href;
  await page.goto(address + hash, { waitUntil: 'load' });
  return { page, seen, address, context };
}

// No request but for the page itself and pictures of the set beside it; no error; nothing of the names has run.
export async function checkQuiet({ page, seen, address }) {
  const folder = address.slice(0, address.lastIndexOf('/') + 1);
  const foreign = seen.requests.filter(url => url.split('#')[0] !== address && !url.startsWith(`${folder}leaves/`));
  equal(foreign.join(' '), '', 'the page asks for nothing else');
  equal(seen.errors.filter(e => !e.includes('ERR_FILE_NOT_FOUND')).join('\n'), '', 'the page has no errors');
  equal(await page.evaluate(() => String(window.owned)), 'undefined', 'no name has run');
}

// Time until the page can be used and its first rows are painted, the processor time of its process until then (which
// other work on the machine does not stretch as much), and what it is made of.
export async function figures({ page, context }) {
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  const times = await page.evaluate(async () => {
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const [load] = performance.getEntriesByType('navigation');
    return {
      ready: Math.round(performance.getEntriesByName('prep-ready')[0].startTime),
      load: Math.round(load.loadEventEnd),
      painted: Math.round(performance.now()),
      nodes: document.querySelectorAll('*').length,
      rows: document.querySelectorAll('.rows *').length,
    };
  });
  const { metrics } = await session.send('Performance.getMetrics');
  const cpu = Math.round(metrics.find(m => m.name === 'ProcessTime').value * 1000);
  return { ...times, cpu };
}

// The page opens within two seconds. On a machine that is busy with other work the clock runs on meanwhile: then the
// processor time counts, and it is said.
export function checkOpens(f, name) {
  console.log(`${name}: usable after ${f.ready} ms, painted after ${f.painted} ms, ${f.cpu} ms of processor, ${f.nodes} elements, ${f.rows} of them rows`);
  check(f.cpu > 10, 'the processor time was measured');
  check(Math.min(f.painted, f.cpu) < 2000, `${name} opens in under 2 s: ${f.painted} ms, ${f.cpu} ms of processor`);
  check(f.rows <= 400, `few elements: ${f.rows}`);
}

export async function checkAxe(page, what) {
  // As a debugger does it, past the policy of the page.
  await page.evaluate(`{ const module = undefined; ${AXE}; window.axe = axe; }`);
  const result = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations', 'passes'] }));
  const bad = result.violations.map(v => `${v.id} ×${v.nodes.length}: ${v.help}\n    ${v.nodes.slice(0, 4).map(n => `${n.html.slice(0, 160)} ${n.failureSummary.slice(0, 200)}`).join('\n    ')}`);
  equal(bad.join('\n'), '', `axe finds nothing (${what})`);
  check(result.passes.length > 15, `axe has looked (${what}): ${result.passes.length} rules passed`);
  return result.passes.length;
}

export async function downloaded(page, act) {
  const [download] = await Promise.all([page.waitForEvent('download'), act()]);
  return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
}

export function done(name) {
  check(checks > 10, 'the test has tested');
  console.log(`${name}: ${checks} checks`);
}
