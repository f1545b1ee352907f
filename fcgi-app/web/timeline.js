// The timeline: each event's arrival is a dot, time to the right, the token's number upwards. Due
// times, where they are known, are a line with hollow dots behind, and the bar from there to a dot is
// how late it was. A path that streams shows one straight line; one that buffers, a staircase.
//
// It is drawn anew each time, but of events that fall on the same pixels only one: the work depends
// on the size of the picture and hardly on the number of tokens.

const MARGIN = { left: 48, right: 14, top: 12, bottom: 28 };
const SPARSE_PX = 4; // for each event: room for circles

export class Timeline {
  #canvas;
  #context;
  #colours = {};
  #series;
  #expected;
  selected = -1; // a row, or none
  now = NaN; // a line there, while a stream runs

  constructor(canvas) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d');
    new ResizeObserver(() => this.#resize()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#resize());
  }

  // `expected` is { tokens, ms }, so that the axes can stand from the beginning.
  show(series, expected) {
    this.#series = series;
    this.#expected = expected;
    this.selected = -1;
  }

  draw() {
    const { width, height } = this.#scales();
    if (width <= 0) return;
    this.#context.clearRect(0, 0, width, height);
    this.#drawAxes();
    this.#drawPieces();
    this.#drawEvents();
    this.#drawSelected();
  }

  // The row whose token is at this height of the element, or -1.
  rowAt(offsetY) {
    const { bottom, perToken } = this.#scales();
    const token = (bottom - offsetY) / perToken;
    let low = 0;
    for (let high = this.#series.rows - 1; low < high;) {
      const middle = (low + high + 1) >> 1;
      if (this.#series.i[middle] <= token) low = middle;
      else high = middle - 1;
    }
    return this.#series.rows === 0 ? -1 : low;
  }

  #resize() {
    const { clientWidth, clientHeight } = this.#canvas;
    const ratio = window.devicePixelRatio || 1;
    this.#canvas.width = Math.round(clientWidth * ratio);
    this.#canvas.height = Math.round(clientHeight * ratio);
    this.#context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(this.#canvas);
    this.#context.font = `11px ${style.fontFamily}`;
    for (const name of ['ink', 'muted', 'line', 'arrived', 'due', 'late']) {
      this.#colours[name] = style.getPropertyValue(`--${name}`);
    }
    this.draw();
  }

  #scales() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const bottom = height - MARGIN.bottom;
    const right = width - MARGIN.right;
    const maxTokens = Math.max(this.#expected.tokens, this.#series.next);
    // A late stream does not move the whole picture with each token.
    let maxMs = Math.max(this.#expected.ms, 10);
    while (maxMs < Math.max(this.#series.last, this.now || 0)) maxMs *= 1.2;
    const perToken = (bottom - MARGIN.top) / maxTokens;
    const perMs = (right - MARGIN.left) / maxMs;
    return { width, height, bottom, right, maxTokens, maxMs, perToken,
      x: (time) => MARGIN.left + time * perMs, y: (token) => bottom - token * perToken };
  }

  #drawAxes() {
    const { bottom, right, maxTokens, maxMs, x, y } = this.#scales();
    const context = this.#context;
    const lines = new Path2D();
    context.fillStyle = this.#colours.muted;
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (const token of ticks(maxTokens, (bottom - MARGIN.top) / 44, 1)) {
      lines.rect(MARGIN.left, Math.round(y(token)), right - MARGIN.left, 1);
      context.fillText(token.toLocaleString('en'), MARGIN.left - 8, y(token));
    }
    context.textBaseline = 'top';
    for (const time of ticks(maxMs, (right - MARGIN.left) / 56, 0)) {
      lines.rect(Math.round(x(time)), bottom, 1, 5);
      context.textAlign = right - x(time) < 20 ? 'right' : 'center';
      context.fillText(maxMs < 2000 ? `${+time.toFixed(3)} ms` : `${+(time / 1000).toFixed(3)} s`,
        Math.min(x(time), right), bottom + 9);
    }
    context.fillStyle = this.#colours.line;
    context.fill(lines);
    context.fillStyle = this.#colours.arrived;
    context.globalAlpha = 0.4;
    if (!Number.isNaN(this.now)) context.fillRect(Math.round(x(this.now)), MARGIN.top, 1, bottom - MARGIN.top);
    context.globalAlpha = 1;
  }

  #drawPieces() {
    const { bottom, x } = this.#scales();
    const context = this.#context;
    context.fillStyle = this.#colours.muted;
    context.textAlign = 'left';
    for (const { t } of this.#series.pieces.slice(1)) {
      for (let y = MARGIN.top; y < bottom; y += 6) context.fillRect(Math.round(x(t)), y, 1, 3);
      context.fillText('resumed', x(t) + 6, MARGIN.top);
    }
  }

  #drawEvents() {
    const { width, perToken, x, y } = this.#scales();
    const series = this.#series;
    const isSparse = series.rows * SPARSE_PX <= width;
    const [arrived, due, dueDots, late] = Array.from({ length: 4 }, () => new Path2D());
    let before = NaN; // the pixels of the event before, as one number
    let beforeY = NaN;
    // A due time that is not known is NaN, which draws nothing.
    series.each((row, dueAt, isFirst) => {
      const arrivedX = x(series.t[row]);
      const tokenY = y(series.i[row]);
      const dueX = x(dueAt);
      const pixelY = Math.round(tokenY);
      const pixels = (arrivedX | 0) + (dueX | 0) * 0x4000 + pixelY * 0x10000000;
      if (pixels === before && !isFirst) return;
      if (arrivedX - dueX > 1 && pixelY !== beforeY) late.rect(dueX, pixelY, arrivedX - dueX, perToken < 2 ? 2 : 1);
      before = pixels;
      beforeY = pixelY;
      if (isFirst) due.moveTo(dueX, tokenY);
      else due.lineTo(dueX, tokenY);
      if (isSparse) {
        circle(arrived, arrivedX, tokenY, 2.5);
        circle(dueDots, dueX, tokenY, 3);
      } else {
        arrived.rect(arrivedX - 1.25, tokenY - 1.25, 2.5, 2.5);
      }
    });
    const context = this.#context;
    context.lineWidth = 1;
    context.fillStyle = this.#colours.late;
    context.fill(late);
    context.strokeStyle = this.#colours.due;
    context.stroke(due);
    context.stroke(dueDots);
    context.fillStyle = this.#colours.arrived;
    context.fill(arrived);
  }

  #drawSelected() {
    const { bottom, x, y } = this.#scales();
    const at = new Path2D();
    circle(at, x(this.#series.t[this.selected]), y(this.#series.i[this.selected]), 6);
    at.moveTo(x(this.#series.t[this.selected]), y(this.#series.i[this.selected]) + 6);
    at.lineTo(x(this.#series.t[this.selected]), bottom);
    this.#context.strokeStyle = this.#colours.ink;
    if (this.selected >= 0) this.#context.stroke(at);
  }
}

function circle(path, x, y, radius) {
  path.moveTo(x + radius, y);
  path.arc(x, y, radius, 0, 2 * Math.PI);
}

// Round numbers from 0 to max: about `count`, steps of 1, 2 or 5, none below `least`.
function ticks(max, count, least) {
  const rough = max / Math.max(1, count);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(least, [1, 2, 5, 10].find((factor) => factor * power >= rough) * power);
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, k) => k * step);
}
