/**
 * graphile-worker's side of the comparison: fill a fresh database with jobs, or work them and say how long it took.
 *
 *   node main.mjs fill URL COUNT      migrate, add COUNT no-op jobs
 *   node main.mjs work URL COUNT      work them; prints {"seconds": S} once none is left
 *
 * Settings of its performance page: a local queue of 500, completions batched without delay, 24 concurrent jobs to a
 * worker, a connection more than that. The page scales it by instances: two, each a process, were the fastest here.
 * It deletes a job that succeeded, so it keeps no history.
 */

import { fork } from "node:child_process";
import pg from "pg";
import { Logger, makeWorkerUtils, run } from "graphile-worker";

const INSTANCES = 2;
const CONCURRENT_JOBS = 24;
const LOCAL_QUEUE = 500;
const FILL_BATCH = 10_000;
const TELL_EVERY_MS = 5;
const LEFT = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS found";

const logger = new Logger(() => () => {});
const [what, url, count] = [process.argv[2], process.argv[3], Number(process.argv[4])];

async function fill() {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  for (let done = 0; done < count; done += FILL_BATCH) {
    const size = Math.min(FILL_BATCH, count - done);
    await utils.addJobs(Array.from({ length: size }, () => ({ identifier: "noop", payload: {} })));
  }
  await utils.release();
}

/** Starts the instances, gives them one signal to begin, and waits until the last deletion is committed. */
async function work() {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const children = Array.from({ length: INSTANCES }, () => fork(process.argv[1], ["instance", url, String(count)]));
  await Promise.all(children.map((child) => new Promise((ready) => child.once("message", ready))));
  const executed = children.map(() => 0);
  const began = performance.now();
  await new Promise((all) => {
    children.forEach((child, n) => {
      child.on("message", (number) => {
        executed[n] = number;
        if (executed.reduce((sum, each) => sum + each, 0) >= count) all();
      });
      child.send("begin");
    });
  });
  while ((await client.query(LEFT)).rows[0].found) {
    await new Promise((later) => setTimeout(later, TELL_EVERY_MS));
  }
  const seconds = (performance.now() - began) / 1000;
  children.forEach((child) => child.send("end"));
  await Promise.all(children.map((child) => new Promise((gone) => child.once("exit", gone))));
  await client.end();
  console.log(JSON.stringify({ seconds, executed: executed.reduce((sum, each) => sum + each, 0) }));
}

async function instance() {
  let executed = 0;
  let told = 0;
  const preset = {
    worker: {
      connectionString: url,
      concurrentJobs: CONCURRENT_JOBS,
      maxPoolSize: CONCURRENT_JOBS + 1,
      localQueue: { size: LOCAL_QUEUE },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
      logger,
    },
  };
  const noop = async () => {
    executed += 1;
  };
  process.send("ready");
  await new Promise((begin) => process.once("message", begin));
  const runner = await run({ preset, taskList: { noop }, noHandleSignals: true });
  const telling = setInterval(() => {
    if (executed !== told) process.send((told = executed));
  }, TELL_EVERY_MS);
  await new Promise((end) => process.once("message", end));
  clearInterval(telling);
  await runner.stop();
  process.disconnect();
}

await { fill, work, instance }[what]();
