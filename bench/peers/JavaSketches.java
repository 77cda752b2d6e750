// Median nanoseconds a value of datasketches-java: `java -cp JARS JavaSketches.java hll|frequent FILE`, where
// FILE holds int64, little-endian. Prints the nanoseconds, then the sketch's own answer.

import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.datasketches.frequencies.LongsSketch;
import org.apache.datasketches.hll.HllSketch;

public class JavaSketches {
  static final int RUNS = 5;

  public static void main(String[] args) throws Exception {
    long[] values;
    try (FileChannel file = FileChannel.open(Path.of(args[1]))) {
      var bytes = file.map(FileChannel.MapMode.READ_ONLY, 0, file.size()).order(ByteOrder.LITTLE_ENDIAN);
      values = new long[(int) (file.size() / 8)];
      bytes.asLongBuffer().get(values);
    }
    double[] took = new double[RUNS];
    String answer = "";
    for (int run = -2; run < RUNS; run++) { // two rounds for the compiler
      long start = clock();
      answer = args[0].equals("hll") ? distinct(values) : frequent(values);
      if (run >= 0) took[run] = (double) (clock() - start) / values.length;
    }
    Arrays.sort(took);
    System.out.println(took[RUNS / 2] + " " + answer);
  }

  static long clock() { // the processor's: what other processes take of it doesn't count
    return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
  }

  static String distinct(long[] values) {
    HllSketch sketch = new HllSketch(12);
    for (long value : values) sketch.update(value);
    return "" + sketch.getEstimate();
  }

  static String frequent(long[] values) {
    LongsSketch sketch = new LongsSketch(4096);
    for (long value : values) sketch.update(value);
    return "" + sketch.getMaximumError();
  }
}
