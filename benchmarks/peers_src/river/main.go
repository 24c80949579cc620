// River's side of the comparison: fill a fresh database with jobs, or work them and say how long it took.
//
//	queued fill URL COUNT          migrate, insert COUNT no-op jobs that are due now
//	queued work URL COUNT          work them; prints {"seconds": S} once none is left
//	queued late URL COUNT          insert COUNT jobs due at one instant, work them; prints their lateness
//
// Settings for throughput, after Config's documentation ("throughput is limited by" FetchCooldown): the least
// cooldown it accepts is 1 ms; many workers, as no-op jobs are fetched at most one per free worker at a time; the
// default batch completer. Completed jobs are kept (the default keeps them for a day). Logs are off.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	maxWorkers        = 2_000 // 500 and 10,000 were slower
	fetchPollInterval = 20 * time.Millisecond
	connections       = 10
	insertBatch       = 10_000
	pollPause         = 5 * time.Millisecond
	leadersNeed       = 20 * time.Second // one is elected and looks for scheduled jobs every few seconds
	leftQuery         = "SELECT EXISTS (SELECT FROM river_job WHERE state IN ('available', 'running', 'scheduled', 'retryable'))"
)

// NoopArgs are those of the job that does nothing.
type NoopArgs struct{}

// Kind names it.
func (NoopArgs) Kind() string { return "noop" }

type noop struct {
	river.WorkerDefaults[NoopArgs]
	note func()
}

func (w *noop) Work(context.Context, *river.Job[NoopArgs]) error {
	w.note()
	return nil
}

func main() {
	count, err := strconv.Atoi(os.Args[3])
	check(err)
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(os.Args[2])
	check(err)
	config.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, config)
	check(err)
	defer pool.Close()
	check(pool.Ping(ctx))
	switch os.Args[1] {
	case "fill":
		migrate(ctx, pool)
		insert(ctx, pool, count, nil)
	case "work":
		work(ctx, pool, count)
	case "late":
		late(ctx, pool, count)
	}
}

func migrate(ctx context.Context, pool *pgxpool.Pool) {
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: silent()})
	check(err)
	_, err = migrator.Migrate(ctx, rivermigrate.DirectionUp, nil)
	check(err)
}

// insert uses COPY, River's fastest way in; without options the jobs are available at once.
func insert(ctx context.Context, pool *pgxpool.Pool, count int, opts *river.InsertOpts) {
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: silent()})
	check(err)
	for done := 0; done < count; done += insertBatch {
		batch := make([]river.InsertManyParams, min(insertBatch, count-done))
		for n := range batch {
			batch[n] = river.InsertManyParams{Args: NoopArgs{}, InsertOpts: opts}
		}
		_, err := client.InsertManyFast(ctx, batch)
		check(err)
	}
}

func client(pool *pgxpool.Pool, note func()) *river.Client[pgx.Tx] {
	workers := river.NewWorkers()
	river.AddWorker(workers, &noop{note: note})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     river.FetchCooldownMin,
		FetchPollInterval: fetchPollInterval,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: maxWorkers}},
		Workers:           workers,
		Logger:            silent(),
	})
	check(err)
	return client
}

func work(ctx context.Context, pool *pgxpool.Pool, count int) {
	var executed atomic.Int64
	all := make(chan struct{})
	running := client(pool, func() {
		if executed.Add(1) == int64(count) {
			close(all)
		}
	})
	began := time.Now()
	check(running.Start(ctx))
	<-all
	untilNoneLeft(ctx, pool)
	took := time.Since(began)
	check(running.Stop(ctx))
	tell(map[string]any{"seconds": took.Seconds(), "executed": executed.Load()})
}

// late measures starts beside the time that the jobs were scheduled for; they are in the database well before.
func late(ctx context.Context, pool *pgxpool.Pool, count int) {
	migrate(ctx, pool)
	due := time.Now().Add(leadersNeed).Truncate(time.Second)
	insert(ctx, pool, count, &river.InsertOpts{ScheduledAt: due})
	var lock sync.Mutex
	lags := make([]float64, 0, count)
	all := make(chan struct{})
	running := client(pool, func() {
		lag := time.Since(due).Seconds() * 1000
		lock.Lock()
		defer lock.Unlock()
		if lags = append(lags, lag); len(lags) == count {
			close(all)
		}
	})
	check(running.Start(ctx))
	if time.Until(due) < time.Second {
		check(fmt.Errorf("inserting the jobs took too long"))
	}
	<-all
	untilNoneLeft(ctx, pool)
	check(running.Stop(ctx))
	sort.Float64s(lags)
	tell(map[string]any{"p50_ms": lags[count/2], "p99_ms": lags[count*99/100], "most_ms": lags[count-1]})
}

// untilNoneLeft waits for the last outcome to be committed: a job counts as done only then.
func untilNoneLeft(ctx context.Context, pool *pgxpool.Pool) {
	for left := true; left; {
		check(pool.QueryRow(ctx, leftQuery).Scan(&left))
		if left {
			time.Sleep(pollPause)
		}
	}
}

func silent() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func tell(answer map[string]any) { check(json.NewEncoder(os.Stdout).Encode(answer)) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
