// Style and behaviour of the page. Nothing is loaded from elsewhere; all text is set as text, never as HTML.
#include "runtime/report/report.h"

namespace cairn::plan {

std::string_view page_style() {
  return R"(
:root { color-scheme: light dark; --ground: #f4f6f8; --panel: #fff; --line: #e1e5ea; --faint: #eef1f4;
  --ink: #20262e; --soft: #55606d; --accent: #0072b2; --now: #fff6e0 }
@media (prefers-color-scheme: dark) { :root { --ground: #12161a; --panel: #1b2127; --line: #323b45; --faint: #272e36;
  --ink: #e4e9ee; --soft: #9aa6b2; --accent: #56b4e9; --now: #3a3320 } }
body { margin: 0; background: var(--ground); color: var(--ink); font: 14px/1.45 system-ui, Helvetica, Arial, sans-serif }
main { max-width: 1220px; margin: 0 auto; padding: 28px 20px 60px }
h1 { font-size: 22px; margin: 0 0 4px; overflow-wrap: anywhere } h2 { font-size: 16px; margin: 0 0 10px }
p { margin: 0 0 10px; color: var(--soft) } p b { color: var(--ink) }
section { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px; margin-top: 16px }
svg { display: block; width: 100%; height: auto }
.picture { overflow-x: auto; margin-bottom: 14px } .picture svg { min-width: 940px }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 0 0 14px; color: var(--soft) }
dt { font-weight: 600; color: var(--ink) } dd { margin: 0; overflow-wrap: anywhere }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(165px, 1fr)); gap: 12px; margin-top: 16px }
.card { background: var(--panel); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px }
.card b { display: block; font-size: 20px; font-weight: 600; font-variant-numeric: tabular-nums }
.card span { color: var(--soft); font-size: 12.5px }
.bar { display: grid; grid-template-columns: minmax(160px, 300px) 1fr 96px; gap: 12px; align-items: center; margin: 3px 0; font-size: 13px }
.bar div { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate }
.bar i { display: block; height: 14px; border-radius: 3px; min-width: 1px }
.bar u { text-decoration: none; text-align: right; font-variant-numeric: tabular-nums }
.scroll { max-height: 620px; overflow: auto; overflow-anchor: none }
summary { cursor: pointer; color: var(--soft) } details .scroll { margin-top: 10px }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-size: 13px }
th { position: sticky; top: 0; background: var(--panel); text-align: left; border-bottom: 2px solid var(--line); padding: 6px 10px; font-weight: 600; white-space: nowrap }
td { border-bottom: 1px solid var(--faint); padding: 0 10px; height: 27px; box-sizing: border-box }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
tr.now td { background: var(--now) }
#values { table-layout: fixed; min-width: 860px }
#values td { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; unicode-bidi: isolate }
#values td i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 7px }
#values tr.gap td { border: 0; padding: 0 }
th button { all: unset; cursor: pointer } th button:focus-visible { outline: 2px solid var(--accent) }
th[aria-sort=ascending] button::after { content: " \2191" } th[aria-sort=descending] button::after { content: " \2193" }
.tools { display: none; gap: 10px; align-items: center; margin-bottom: 10px; flex-wrap: wrap }
.tools input, .tools select { font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 6px; padding: 5px 9px }
.tools input { flex: 1; min-width: 180px; max-width: 420px } .tools output { color: var(--soft); font-variant-numeric: tabular-nums }
#tip { position: fixed; z-index: 9; pointer-events: none; white-space: pre; background: var(--panel); color: var(--ink); border: 1px solid var(--line);
  border-radius: 7px; padding: 7px 10px; font-size: 12.5px; line-height: 1.4; box-shadow: 0 3px 14px #0003; max-width: 520px; overflow: hidden; text-overflow: ellipsis }
#tip::first-line { font-weight: 600 }
@media (max-width: 640px) { main { padding: 18px 10px 40px } section { padding: 14px 12px } dl { grid-template-columns: 1fr }
  .bar { grid-template-columns: minmax(90px, 42%) 1fr 74px; gap: 8px } .cards { grid-template-columns: repeat(2, 1fr) } }
@media print { .tools, #tip { display: none !important } .scroll { max-height: none } }
)";
}

std::string_view page_script() {
  return R"(
'use strict';
(() => {  // hovers: at once, next to the pointer
  const tip = document.createElement('div');
  tip.id = 'tip';
  tip.hidden = true;
  document.body.append(tip);
  for (const title of document.querySelectorAll('svg title')) {
    title.parentNode.tip = title.textContent;
    title.parentNode.classList.add('tipped');
    title.remove();
  }
  const show = event => {
    const of = event.target.closest && event.target.closest('.tipped');
    tip.hidden = !of;
    if (!of) return;
    if (tip.textContent !== of.tip) tip.textContent = of.tip;
    const x = event.clientX + 16, y = event.clientY + 16;
    tip.style.left = Math.max(4, x + tip.offsetWidth > innerWidth - 4 ? x - 32 - tip.offsetWidth : x) + 'px';
    tip.style.top = Math.max(4, y + tip.offsetHeight > innerHeight - 4 ? y - 32 - tip.offsetHeight : y) + 'px';
  };
  document.addEventListener('pointermove', show);
  document.addEventListener('pointerdown', show);
  document.addEventListener('scroll', () => { tip.hidden = true; }, true);
})();
(() => {  // the table: sorted, filtered, and only the rows in sight
  const data = JSON.parse(document.getElementById('values-data').textContent);
  const by = id => document.getElementById(id);
  const box = by('values-box'), body = by('values').tBodies[0], search = by('values-search'), which = by('values-which');
  const heads = [...by('values').tHead.rows[0].cells];
  const HEIGHT = 27, MORE = 12;
  const human = bytes => {
    let unit = 0;
    for (; bytes >= 1024 && unit < 6; ++unit) bytes /= 1024;
    return bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : bytes >= 10 ? 1 : 2) + ' ' + ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'][unit];
  };
  const get = [k => data.name[k], k => data.bytes[k], k => data.regions[data.region[k]], k => data.decisions[data.decision[k]],
    k => data.reasons[data.reason[k]], k => data.offset[k], k => data.first[k]];
  const texts = data.name.map((name, k) => [name, get[2](k), get[4](k)].join('\n').toLowerCase());
  let order = data.name.map((_, k) => k), column = 1, sign = -1;
  const gap = rows => {
    const tr = document.createElement('tr'), td = tr.insertCell();
    tr.className = 'gap';
    td.colSpan = heads.length;
    td.style.height = rows * HEIGHT + 'px';
    return tr;
  };
  const row = k => {
    const tr = document.createElement('tr');
    [get[0](k), human(data.bytes[k]), get[2](k), get[3](k), get[4](k), data.offset[k], data.first[k] + ' \u2013 ' + data.last[k]]
      .forEach((text, c) => {
        const td = tr.insertCell();
        td.textContent = text;
        td.title = c === 1 ? data.bytes[k] + ' bytes' : text;
        if (c === 1 || c > 4) td.className = 'n';
        if (c === 3) td.prepend(Object.assign(document.createElement('i'), { style: 'background:' + data.colors[data.decision[k]] }));
      });
    return tr;
  };
  let shown = '';
  const draw = () => {
    const from = Math.min(Math.max(0, Math.floor(box.scrollTop / HEIGHT) - MORE), Math.max(0, order.length - 1));
    const to = Math.min(order.length, from + Math.ceil(box.clientHeight / HEIGHT) + 2 * MORE);
    const now = from + ' ' + to;
    if (now === shown) return;
    shown = now;
    body.replaceChildren(gap(from), ...order.slice(from, to).map(row), gap(order.length - to));
  };
  const update = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean), wanted = which.value;
    order = [];
    let bytes = 0;
    for (let k = 0; k < texts.length; ++k) {
      if ((wanted === '' || String(data.decision[k]) === wanted) && words.every(word => texts[k].includes(word))) {
        order.push(k);
        bytes += data.bytes[k];
      }
    }
    const key = get[column];
    order.sort((a, b) => {
      const x = key(a), y = key(b);
      return (x < y ? -sign : x > y ? sign : 0) || a - b;
    });
    heads.forEach((head, c) => {
      if (c === column) head.setAttribute('aria-sort', sign > 0 ? 'ascending' : 'descending');
      else head.removeAttribute('aria-sort');
    });
    by('values-count').textContent = order.length.toLocaleString('en') + ' of ' + texts.length.toLocaleString('en') + ' values, ' + human(bytes);
    shown = '';
    box.scrollTop = 0;
    draw();
  };
  heads.forEach((head, c) => {
    const button = document.createElement('button');
    button.textContent = head.textContent;
    button.addEventListener('click', () => {
      sign = c === column ? -sign : c === 1 ? -1 : 1;
      column = c;
      update();
    });
    head.replaceChildren(button);
  });
  data.decisions.forEach((name, k) => which.append(new Option(name, k)));
  search.addEventListener('input', update);
  which.addEventListener('change', update);
  box.addEventListener('scroll', draw);
  addEventListener('resize', draw);
  box.style.height = Math.min(620, 40 + HEIGHT * texts.length) + 'px';
  by('values-tools').style.display = 'flex';
  update();
})();
)";
}

}  // namespace cairn::plan
