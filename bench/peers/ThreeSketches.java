// What the programs of three sketches share: a post, its sketches, and the marks between which speed is measured.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Iterator;
import java.util.Locale;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.datasketches.frequencies.ErrorType;
import org.apache.datasketches.frequencies.ItemsSketch;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.kll.KllDoublesSketch;

/** The sketches of one window, of the sizes that streamgauge's own have. */
class ThreeSketches {
    static final int LG_REGISTERS = 12, K = 200, ITEMS = 4096;
    static final long MINUTE = 60_000;

    final HllSketch users = new HllSketch(LG_REGISTERS, TgtHllType.HLL_8);
    final KllDoublesSketch prices = KllDoublesSketch.newHeapInstance(K);
    final ItemsSketch<String> tags = new ItemsSketch<>(ITEMS);

    void update(Post post) {
        users.update(post.user);
        prices.update(post.price);
        tags.update(post.tag);
    }

    /** A message, as Jackson makes it. */
    public static class Post {
        public String user;
        public String tag;
        public double price;
        public long ts;
    }

    /** The open windows of a task, on its heap: no engine serialises anything for a message. */
    static class Windows {
        private final TreeMap<Long, ThreeSketches> open = new TreeMap<>();
        private final Answers answers;
        private ThreeSketches latest;
        private long latestStart = Long.MIN_VALUE;
        private int uncounted;

        Windows(Answers answers) {
            this.answers = answers;
        }

        void update(Post post) {
            long start = post.ts - post.ts % MINUTE;
            if (start != latestStart) {
                latest = open.computeIfAbsent(start, none -> new ThreeSketches());
                latestStart = start;
            }
            latest.update(post);
            if (++uncounted == 1000) {
                count();
            }
        }

        /** Give out the windows that end up to this time. */
        void close(long time) {
            SortedMap<Long, ThreeSketches> closed = open.headMap(time - MINUTE, true);
            if (!closed.isEmpty()) {
                closed.forEach(answers::merge);
                closed.clear();
                latestStart = Long.MIN_VALUE;
            }
        }

        void count() {
            answers.marks.add(uncounted);
            uncounted = 0;
        }
    }

    /** What the windows of all tasks are together: merged in this process, without another topic or shuffle. */
    static class Answers {
        final Marks marks;
        private final TreeMap<Long, Object[]> merged = new TreeMap<>();

        Answers(Marks marks) {
            this.marks = marks;
        }

        @SuppressWarnings("unchecked")
        synchronized void merge(long start, ThreeSketches part) {
            Object[] all = merged.computeIfAbsent(
                start, none -> new Object[] {
                    new Union(LG_REGISTERS), KllDoublesSketch.newHeapInstance(K), new ItemsSketch<String>(ITEMS)});
            ((Union) all[0]).update(part.users);
            ((KllDoublesSketch) all[1]).merge(part.prices);
            ((ItemsSketch<String>) all[2]).merge(part.tags);
        }

        /** A JSON array: of each window its distinct users, median price, most frequent tag, and that tag's count. */
        @SuppressWarnings("unchecked")
        synchronized String json() {
            Iterator<String> windows = merged.values().stream().map(all -> {
                ItemsSketch.Row<String> top =
                    ((ItemsSketch<String>) all[2]).getFrequentItems(ErrorType.NO_FALSE_NEGATIVES)[0];
                return String.format(Locale.ROOT, "[%f, %f, \"%s\", %d]", ((Union) all[0]).getEstimate(),
                    ((KllDoublesSketch) all[1]).getQuantile(0.5), top.getItem(), top.getEstimate());
            }).iterator();
            return "[" + String.join(", ", (Iterable<String>) () -> windows) + "]";
        }
    }

    /** The time by the wall and of all processors at two counts of messages. */
    static class Marks {
        final CountDownLatch done = new CountDownLatch(1);
        private final long warm, all;
        private final AtomicLong counted = new AtomicLong();
        private final long[] from = new long[2], to = new long[2];

        Marks(long warm, long all) {
            this.warm = warm;
            this.all = all;
        }

        void add(long messages) {
            long after = counted.addAndGet(messages), before = after - messages;
            if (before < warm && after >= warm) {
                now(from);
            }
            if (before < all && after >= all) {
                now(to);
                done.countDown();
            }
        }

        /** Nanoseconds a message between them, by the wall and of processors. */
        String json() {
            double messages = all - warm;
            return String.format(Locale.ROOT, "%f, %f", (to[0] - from[0]) / messages, (to[1] - from[1]) / messages);
        }

        private static void now(long[] times) {
            times[0] = System.nanoTime();
            times[1] = ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
        }
    }
}
