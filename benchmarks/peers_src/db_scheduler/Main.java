import com.github.kagkarlsson.scheduler.Scheduler;
import com.github.kagkarlsson.scheduler.SchedulerClient;
import com.github.kagkarlsson.scheduler.jdbc.PostgreSqlJdbcCustomization;
import com.github.kagkarlsson.scheduler.task.TaskInstance;
import com.github.kagkarlsson.scheduler.task.helper.OneTimeTask;
import com.github.kagkarlsson.scheduler.task.helper.Tasks;
import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.net.URI;
import java.sql.SQLException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import javax.sql.DataSource;

/**
 * db-scheduler's side of the comparison: fill a fresh database with jobs, or work them and say how long it took.
 *
 * <pre>
 * java Main fill URL COUNT      make its table, schedule COUNT no-op one-time tasks
 * java Main work URL COUNT      work them; prints {"seconds": S} once none is left
 * </pre>
 *
 * Settings of its performance page: lock-and-fetch in one statement (its PostgreSQL customization), 100 threads,
 * limits 2.0 and 6.0, a connection to each thread. It deletes a one-time task that succeeded: it keeps no history.
 */
public final class Main {
  private static final int THREADS = 100;
  private static final double LOWER = 2.0;
  private static final double UPPER = 6.0;
  private static final int FILL_BATCH = 5_000;
  private static final String TABLE =
      """
      CREATE TABLE scheduled_tasks (
        task_name text NOT NULL, task_instance text NOT NULL, task_data bytea,
        execution_time timestamptz NOT NULL, picked boolean NOT NULL, picked_by text,
        last_success timestamptz, last_failure timestamptz, consecutive_failures int,
        last_heartbeat timestamptz, version bigint NOT NULL, priority smallint,
        PRIMARY KEY (task_name, task_instance));
      CREATE INDEX execution_time_idx ON scheduled_tasks (execution_time);
      CREATE INDEX last_heartbeat_idx ON scheduled_tasks (last_heartbeat);
      """; // without the index that only users of priorities need

  public static void main(String[] arguments) throws Exception {
    int count = Integer.parseInt(arguments[2]);
    try (HikariDataSource source = source(arguments[1])) {
      if (arguments[0].equals("fill")) {
        fill(source, count);
      } else {
        work(source, count);
      }
    }
  }

  private static void fill(DataSource source, int count) throws SQLException {
    try (var connection = source.getConnection();
        var statement = connection.createStatement()) {
      statement.execute(TABLE);
    }
    SchedulerClient client =
        SchedulerClient.Builder.create(source)
            .jdbcCustomization(new PostgreSqlJdbcCustomization(false, false))
            .build();
    Instant now = Instant.now();
    for (int done = 0; done < count; done += FILL_BATCH) {
      List<TaskInstance<?>> batch =
          IntStream.range(done, Math.min(done + FILL_BATCH, count))
              .mapToObj(n -> new TaskInstance<Void>("noop", Integer.toString(n)))
              .collect(Collectors.toList());
      client.scheduleBatch(batch, now);
    }
  }

  private static void work(DataSource source, int count) throws Exception {
    AtomicInteger executed = new AtomicInteger();
    CountDownLatch all = new CountDownLatch(1);
    OneTimeTask<Void> noop =
        Tasks.oneTime("noop")
            .execute(
                (instance, context) -> {
                  if (executed.incrementAndGet() == count) {
                    all.countDown();
                  }
                });
    Scheduler scheduler =
        Scheduler.create(source, noop)
            .threads(THREADS)
            .pollUsingLockAndFetch(LOWER, UPPER)
            .pollingInterval(Duration.ofMillis(100))
            .jdbcCustomization(new PostgreSqlJdbcCustomization(false, false))
            .build();
    long began = System.nanoTime();
    scheduler.start();
    all.await();
    awaitNoneLeft(source);
    double seconds = (System.nanoTime() - began) / 1e9;
    scheduler.stop();
    System.out.printf(Locale.ROOT, "{\"seconds\": %.6f, \"executed\": %d}%n", seconds, executed.get());
  }

  /** A job counts as done only when its deletion is committed. */
  private static void awaitNoneLeft(DataSource source) throws Exception {
    try (var connection = source.getConnection();
        var statement = connection.prepareStatement("SELECT EXISTS (SELECT FROM scheduled_tasks)")) {
      while (true) {
        try (var rows = statement.executeQuery()) {
          rows.next();
          if (!rows.getBoolean(1)) {
            return;
          }
        }
        Thread.sleep(5);
      }
    }
  }

  private static HikariDataSource source(String url) {
    URI uri = URI.create(url);
    int port = uri.getPort() < 0 ? 5432 : uri.getPort();
    HikariConfig config = new HikariConfig();
    config.setJdbcUrl(
        "jdbc:postgresql://" + uri.getHost() + ":" + port + uri.getPath() + "?reWriteBatchedInserts=true");
    String[] user = uri.getUserInfo().split(":", 2);
    config.setUsername(user[0]);
    if (user.length > 1) {
      config.setPassword(user[1]);
    }
    config.setMaximumPoolSize(THREADS + 4);
    return new HikariDataSource(config);
  }

  private Main() {}
}
