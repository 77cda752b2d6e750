// What the programs of `bench curves` share: their arguments, events, aggregates of a window, and what they report.

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.hll.Union;
import org.apache.datasketches.kll.KllDoublesSketch;

/** The totals of all closed windows, and the clocks between which the second half of the messages was read. */
class Curve {
    static final int LG_REGISTERS = 12, K = 200;
    static Map<String, String> arguments = new HashMap<>();
    static final CountDownLatch done = new CountDownLatch(1);
    private static long read, counted, rows, all;
    private static double sum, distinct;
    private static long[] half, end;

    /** Arguments are written NAME=VALUE. */
    static void begin(String[] given) {
        for (String one : given) {
            String[] pair = one.split("=", 2);
            arguments.put(pair[0], pair[1]);
        }
        all = number("messages");
    }

    static String text(String name) {
        return arguments.get(name);
    }

    static long number(String name) {
        return Long.parseLong(arguments.get(name));
    }

    static synchronized void read(long messages) {
        read += messages;
        if (half == null && read >= all / 2) {
            half = clocks();
        }
        if (read >= all) {
            done.countDown();
        }
    }

    static synchronized void close(State state) {
        rows++;
        counted += state.count;
        sum += state.sum;
        distinct += state.distinct();
    }

    static synchronized void end() {
        end = clocks();
    }

    /** Nanoseconds by the clock and of processors of a message, messages and rows counted, sum, distinct, peak. */
    static synchronized String json() throws IOException {
        double messages = all - all / 2;
        return String.format(Locale.ROOT, "[%f, %f, %d, %d, %f, %f, %d]", (end[0] - half[0]) / messages,
            (end[1] - half[1]) / messages, counted, rows, sum, distinct, peak());
    }

    /** Bytes of memory that this process had at most. */
    private static long peak() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmHWM:")) {
                return 1024 * Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }

    private static long[] clocks() {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return new long[] {System.nanoTime(), system.getProcessCpuTime()};
    }

    /** A message, as Jackson makes it. */
    @com.fasterxml.jackson.annotation.JsonIgnoreProperties(ignoreUnknown = true)
    public static class Event {
        public long k;
        public String u;
        public double v;
        public long ts;
    }

    /** The aggregates of a window and key: a count, a sum, distinct values and quantiles by turns. */
    static class State {
        long count;
        double sum;
        private final long[] counts;
        private final double[] sums;
        private final HllSketch[] users;
        private final KllDoublesSketch[] values;

        State() {
            int many = (int) number("aggregates");
            counts = new long[(many + 3) / 4];
            sums = new double[(many + 2) / 4];
            users = new HllSketch[(many + 1) / 4];
            values = new KllDoublesSketch[many / 4];
            for (int i = 0; i < users.length; i++) {
                users[i] = new HllSketch(LG_REGISTERS, TgtHllType.HLL_8);
            }
            for (int i = 0; i < values.length; i++) {
                values[i] = KllDoublesSketch.newHeapInstance(K);
            }
        }

        void update(Event event) {
            count++;
            sum += event.v;
            for (int i = 0; i < counts.length; i++) {
                counts[i]++;
            }
            for (int i = 0; i < sums.length; i++) {
                sums[i] += event.v;
            }
            for (HllSketch sketch : users) {
                sketch.update(event.u);
            }
            for (KllDoublesSketch sketch : values) {
                sketch.update(event.v);
            }
        }

        /** Sessions that grow together. */
        State merge(State other) {
            count += other.count;
            sum += other.sum;
            for (int i = 0; i < counts.length; i++) {
                counts[i] += other.counts[i];
            }
            for (int i = 0; i < sums.length; i++) {
                sums[i] += other.sums[i];
            }
            for (int i = 0; i < users.length; i++) {
                Union union = new Union(LG_REGISTERS);
                union.update(users[i]);
                union.update(other.users[i]);
                users[i] = union.getResult(TgtHllType.HLL_8);
            }
            for (int i = 0; i < values.length; i++) {
                values[i].merge(other.values[i]);
            }
            return this;
        }

        double distinct() {
            return users.length == 0 ? 0 : users[0].getEstimate();
        }
    }
}
