// For each figure of the page: a point of each series that is in sight, in pixels of the window once
// its figure is scrolled to, and the cells of the table that tell of it.
(() => {
  const scales = {
    lin: (v, lo, hi) => (v - lo) / (hi - lo),
    log: (v, lo, hi) => Math.log(v / lo) / Math.log(hi / lo),
    pct: (v, lo, hi) => Math.log(1 - Math.min(v, hi) / 100) / Math.log(1 - hi / 100),
  };
  const scale = (text) => {
    const [kind, lo, hi] = text.split(' ');
    return (v) => scales[kind](+v, +lo, +hi);
  };
  return [...document.querySelectorAll('figure')].map((figure, number) => {
    const frame = figure.querySelector('.frame');
    const [x, y] = [scale(frame.dataset.x), scale(frame.dataset.y)];
    const down = 'down' in frame.dataset;
    const table = figure.querySelector('details.data table');
    const rows = table ? [...table.tBodies[0].rows] : [];
    let xs = [];
    const places = [];
    for (const group of frame.querySelectorAll('.s[data-y]')) {
      xs = group.dataset.x ? group.dataset.x.split(' ') : xs;
      const ys = group.dataset.y.split(' ');
      const step = 'step' in group.dataset;
      const listed = group.dataset.r.startsWith(',') && group.dataset.r.slice(1).split(' ');
      const i = Math.floor((ys.length - (step ? 2 : 1)) / 2);
      const left = step ? (x(xs[i]) + x(xs[i + 1])) / 2 : x(xs[i]);
      const top = down ? y(ys[i]) : 1 - y(ys[i]);
      if (!(left >= 0 && left <= 1 && top >= 0 && top <= 1)) continue;
      const row = rows[listed ? +listed[i] : +group.dataset.r + i];
      const column = +group.dataset.c.split(' ')[0];
      places.push({ left, top, row: row.cells[0].textContent,
        cell: row.cells[column].textContent });
    }
    return { number, title: figure.querySelector('b').textContent, places };
  });
})()
