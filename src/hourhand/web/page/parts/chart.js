// A time series drawn by uPlot, in the page's colours; a sentence says the same to those who do not see it.
import { html, useEffect, useRef, useState } from "../html.js";
import uPlot from "../vendor/uplot.js";
import { theme } from "../settings.js";
import { moment, zoneOf } from "../time.js";

const DAYS_FROM_S = 36 * 3600;
const bars = uPlot.paths.bars({ size: [0.7, 40], align: 1 });

// series: [{label, tone, bars?, points?}], data: [xs in seconds, …ys], unit: text of a value; ago: times as distances from the last.
export function Chart({ label, series, data, unit, height = 150, zone, ago = false }) {
  const place = useRef(null);
  const plot = useRef(null);
  const [readout, setReadout] = useState(null);
  const chosen = theme.value;
  const latest = useRef({});
  latest.current = { unit, zone, data, ago };

  useEffect(() => {
    const box = place.current;
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(box, series, height, latest, setReadout), latest.current.data, box);
    };
    make();
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: box.clientWidth, height: tall(height) }));
    watch.observe(box);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => {
      watch.disconnect();
      dark.removeEventListener("change", make);
      plot.current?.destroy();
      plot.current = null;
    };
  }, [chosen, series.map((one) => one.label).join()]);

  useEffect(() => plot.current?.setData(data), [data]);

  return html`<figure class="chart">
    <figcaption>
      ${series.map((one) => html`<span class="legend ${one.tone}" key=${one.label}><i></i>${one.label}</span>`)}
      <span class="readout">${readout || ""}</span>
    </figcaption>
    <div ref=${place} role="img" aria-label=${label}></div>
  </figure>`;
}

// Every ten minutes, counted back from the last; every twenty where there is little room.
const NARROW = 420;
const distances = {
  splits: (self) => {
    const last = self.data[0].at(-1);
    const [count, step] = self.width < NARROW ? [3, 1200] : [6, 600];
    return Array.from({ length: count }, (_, index) => last - (count - 1 - index) * step);
  },
  values: (self, ticks) => ticks.map((at) => (at === self.data[0].at(-1) ? "now" : `−${Math.round((self.data[0].at(-1) - at) / 60)} min`)),
};

function tall(height) {
  const root = parseFloat(getComputedStyle(document.documentElement).fontSize) || 14;
  return Math.round((height * root) / 14);
}

function options(box, series, height, latest, setReadout) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const root = parseFloat(style.fontSize) || 14;
  const font = `${Math.round(root * 0.8)}px system-ui, sans-serif`;
  const axis = { stroke: colour("muted"), font, grid: { stroke: colour("line"), width: 1 }, ticks: { show: false } };
  const clock = (at, from, to) => {
    const text = moment(at * 1000, zoneOf(latest.current.zone), { seconds: false });
    return to - from > DAYS_FROM_S ? text.split(" ").slice(1, 3).join(" ") : text.slice(-5); // over days the day says more
  };
  const shown = (value) => (value === null || value === undefined ? "–" : latest.current.unit(value));
  return {
    width: box.clientWidth || 300,
    height: tall(height),
    legend: { show: false },
    cursor: { y: false, points: { size: 5 } },
    scales: { x: { time: true, range: (self, low, high) => [low, high + (high - low || 60) / 50] }, y: { range: (self, low, high) => [0, Math.max(high, 1) * 1.1] } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zoneOf(latest.current.zone)),
    axes: [
      { ...axis, size: root * 2, ...(latest.current.ago ? distances : { space: root * 5, values: (self, ticks) => {
        const texts = ticks.map((at) => clock(at, self.scales.x.min, self.scales.x.max));
        return texts.map((text, index) => (index && text === texts[index - 1] ? "" : text));
      } }) },
      { ...axis, size: root * 4.6, space: root * 2, values: (self, ticks) => ticks.map((value) => latest.current.unit(value)) },
    ],
    series: [
      {},
      ...series.map((one) => ({
        label: one.label,
        stroke: colour(one.tone),
        fill: one.bars ? colour(one.tone) : undefined,
        width: one.bars ? 0 : 1.5,
        paths: one.bars ? bars : undefined,
        points: { show: one.points ?? false, size: 4 },
        spanGaps: true,
      })),
    ],
    hooks: {
      setCursor: [
        (self) => {
          const index = self.cursor.idx;
          if (index === null || index === undefined || self.cursor.left < 0) return setReadout(null);
          const at = moment(self.data[0][index] * 1000, zoneOf(latest.current.zone), { seconds: false });
          setReadout(`${at}: ${series.map((one, place) => `${one.label} ${shown(self.data[place + 1][index])}`).join(", ")}`);
        },
      ],
    },
  };
}
