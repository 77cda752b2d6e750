// Writes and reads the sketches that others stored, by datasketches-java: one line in, one line out.
// Run: java -cp datasketches-java.jar:datasketches-memory.jar StoredOracle.java
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HexFormat;
import org.apache.datasketches.common.ArrayOfLongsSerDe;
import org.apache.datasketches.common.ArrayOfStringsSerDe;
import org.apache.datasketches.cpc.CpcSketch;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.memory.WritableMemory;
import org.apache.datasketches.quantiles.DoublesSketch;
import org.apache.datasketches.quantiles.UpdateDoublesSketch;
import org.apache.datasketches.req.ReqSketch;
import org.apache.datasketches.sampling.VarOptItemsSketch;
import org.apache.datasketches.tdigest.TDigestDouble;
import org.apache.datasketches.tuple.Sketches;
import org.apache.datasketches.tuple.adouble.DoubleSketch;
import org.apache.datasketches.tuple.adouble.DoubleSummary;
import org.apache.datasketches.tuple.adouble.DoubleSummaryDeserializer;
import org.apache.datasketches.tuple.aninteger.IntegerSketch;
import org.apache.datasketches.tuple.aninteger.IntegerSummary;
import org.apache.datasketches.tuple.aninteger.IntegerSummaryDeserializer;
import org.apache.datasketches.tuple.arrayofdoubles.ArrayOfDoublesSketches;
import org.apache.datasketches.tuple.arrayofdoubles.ArrayOfDoublesUpdatableSketch;
import org.apache.datasketches.tuple.arrayofdoubles.ArrayOfDoublesUpdatableSketchBuilder;

public class StoredOracle {
  static final HexFormat HEX = HexFormat.of();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] w = line.split(" ");
      System.out.println(w[0].equals("write") ? HEX.formatHex(write(w[1], Integer.parseInt(w[2]))) : read(w[1], HEX.parseHex(w[2])));
    }
  }

  // A sketch of 0 … n − 1.
  static byte[] write(String name, int n) {
    switch (name) {
      case "cpc":
        CpcSketch cpc = new CpcSketch(10);
        for (long i = 0; i < n; i++) { cpc.update(i - 100); }
        return cpc.toByteArray();
      case "classic": case "classic_updatable":
        UpdateDoublesSketch classic = DoublesSketch.builder().setK(32).build();
        for (int i = 0; i < n; i++) { classic.update(i); }
        return name.equals("classic") ? classic.compact().toByteArray() : classic.toByteArray();
      case "req":
        ReqSketch req = ReqSketch.builder().setK(12).setHighRankAccuracy(true).build();
        for (int i = 0; i < n; i++) { req.update(i); }
        return req.toByteArray();
      case "tdigest":
        TDigestDouble digest = new TDigestDouble((short) 100);
        for (int i = 0; i < n; i++) { digest.update(i); }
        return digest.toByteArray();
      case "var_opt_long":
        VarOptItemsSketch<Long> longs = VarOptItemsSketch.newInstance(20);
        for (long i = 0; i < n; i++) { longs.update(i, 1 + i % 7); }
        return longs.toByteArray(new ArrayOfLongsSerDe());
      case "var_opt_string":
        VarOptItemsSketch<String> strings = VarOptItemsSketch.newInstance(20);
        for (long i = 0; i < n; i++) { strings.update("é" + i, 1 + i % 7); }
        return strings.toByteArray(new ArrayOfStringsSerDe());
      case "tuple_double":
        DoubleSketch doubles = new DoubleSketch(8, DoubleSummary.Mode.Sum);
        for (long i = 0; i < n; i++) { doubles.update(i, i % 7 + 0.5); }
        return doubles.compact().toByteArray();
      case "tuple_integer":
        IntegerSketch integers = new IntegerSketch(8, IntegerSummary.Mode.Max);
        for (long i = 0; i < n; i++) { integers.update(i, (int) (i % 7)); }
        return integers.compact().toByteArray();
      default:
        ArrayOfDoublesUpdatableSketch arrays =
            new ArrayOfDoublesUpdatableSketchBuilder().setNominalEntries(256).setNumberOfValues(2).build();
        for (long i = 0; i < n; i++) { arrays.update(i, new double[] {i % 7, 1}); }
        return arrays.compact().toByteArray();
    }
  }

  // What Java makes of an image: how much it has seen, and an answer.
  static String read(String name, byte[] image) {
    Memory memory = Memory.wrap(image);
    switch (name) {
      case "cpc":
        CpcSketch cpc = CpcSketch.heapify(image);
        return cpc.getEstimate() + " " + cpc.getUpperBound(2);
      case "classic":
        DoublesSketch classic = DoublesSketch.heapify(memory);
        return classic.getN() + " " + (classic.isEmpty() ? 0 : classic.getMaxItem());
      case "req":
        ReqSketch req = ReqSketch.heapify(memory);
        return req.getN() + " " + (req.isEmpty() ? 0 : req.getMaxItem());
      case "tdigest":
        TDigestDouble digest = TDigestDouble.heapify(memory);
        return digest.getTotalWeight() + " " + (digest.isEmpty() ? 0 : digest.getMaxValue());
      case "var_opt_long":
        VarOptItemsSketch<Long> longs = VarOptItemsSketch.heapify(memory, new ArrayOfLongsSerDe());
        return longs.getN() + " " + longs.estimateSubsetSum(item -> true).getEstimate();
      case "var_opt_string":
        VarOptItemsSketch<String> strings = VarOptItemsSketch.heapify(memory, new ArrayOfStringsSerDe());
        return strings.getN() + " " + strings.estimateSubsetSum(item -> item.startsWith("é")).getEstimate();
      case "tuple_double":
        var doubles = Sketches.heapifySketch(memory, new DoubleSummaryDeserializer());
        double total = 0;
        for (var it = doubles.iterator(); it.next(); ) { total += it.getSummary().getValue(); }
        return doubles.getEstimate() + " " + total / doubles.getTheta();
      case "tuple_integer":
        var integers = Sketches.heapifySketch(memory, new IntegerSummaryDeserializer());
        long sum = 0;
        for (var it = integers.iterator(); it.next(); ) { sum += it.getSummary().getValue(); }
        return integers.getEstimate() + " " + sum / integers.getTheta();
      default:
        var arrays = ArrayOfDoublesSketches.heapifySketch(memory);
        double first = 0;
        for (var it = arrays.iterator(); it.next(); ) { first += it.getValues()[0]; }
        return arrays.getEstimate() + " " + first / arrays.getTheta();
    }
  }
}
