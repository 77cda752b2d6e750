// Answers questions about datasketches-java's hash, HLL and theta sketches, one line in, one line out.
// Run: java -cp datasketches-java.jar:datasketches-memory.jar DistinctOracle.java
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.datasketches.hash.MurmurHash3;
import org.apache.datasketches.hll.HllSketch;
import org.apache.datasketches.hll.TgtHllType;
import org.apache.datasketches.memory.Memory;
import org.apache.datasketches.theta.AnotB;
import org.apache.datasketches.theta.CompactSketch;
import org.apache.datasketches.theta.Intersection;
import org.apache.datasketches.theta.JaccardSimilarity;
import org.apache.datasketches.theta.SetOperation;
import org.apache.datasketches.theta.Sketch;
import org.apache.datasketches.theta.Union;
import org.apache.datasketches.theta.UpdateSketch;

public class DistinctOracle {
  static final HexFormat HEX = HexFormat.of();

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String answer;
      try {
        answer = answer(line.split(" "));
      } catch (Throwable e) {
        answer = "error " + e.toString().replace('\n', ' ');
      }
      System.out.println(answer);
      System.out.flush();
    }
  }

  static String answer(String[] w) {
    switch (w[0]) {
      case "hash": // hex of the bytes, or "-" and a long
        long[] h = w[1].equals("-")
            ? MurmurHash3.hash(new long[] {Long.parseLong(w[2])}, 9001L)
            : MurmurHash3.hash(HEX.parseHex(w[1]), 9001L);
        return Long.toUnsignedString(h[0]) + " " + Long.toUnsignedString(h[1]);
      case "hll": // lg_k, type, first, count: a sketch of those longs
        HllSketch made = new HllSketch(Integer.parseInt(w[1]), TgtHllType.valueOf(w[2]));
        for (long i = 0, first = Long.parseLong(w[3]); i < Long.parseLong(w[4]); i++) { made.update(first + i); }
        return hll(made);
      case "hll_as": // type, image
        return hll(HllSketch.heapify(HEX.parseHex(w[2])).copyAs(TgtHllType.valueOf(w[1])));
      case "hll_go_on": // image, first, count: more longs into a sketch read back
        HllSketch read = HllSketch.heapify(HEX.parseHex(w[1]));
        for (long i = 0, first = Long.parseLong(w[2]); i < Long.parseLong(w[3]); i++) { read.update(first + i); }
        return hll(read);
      case "hll_union": // greatest lg_k, images
        org.apache.datasketches.hll.Union hlls = new org.apache.datasketches.hll.Union(Integer.parseInt(w[1]));
        for (int i = 2; i < w.length; i++) { hlls.update(HllSketch.heapify(HEX.parseHex(w[i]))); }
        return hll(hlls.getResult(TgtHllType.HLL_8));
      case "theta": // lg_k, first, count: a sketch of those longs
        UpdateSketch theta = UpdateSketch.builder().setNominalEntries(1 << Integer.parseInt(w[1])).build();
        for (long i = 0, first = Long.parseLong(w[2]); i < Long.parseLong(w[3]); i++) { theta.update(first + i); }
        return theta(theta.rebuild().compact(true, null));
      case "theta_raw": // the same without the last rebuild: as it is when a query comes in between
        UpdateSketch raw = UpdateSketch.builder().setNominalEntries(1 << Integer.parseInt(w[1])).build();
        for (long i = 0, first = Long.parseLong(w[2]); i < Long.parseLong(w[3]); i++) { raw.update(first + i); }
        return theta(raw.compact(true, null)) + " " + HEX.formatHex(raw.toByteArray());
      case "theta_read": // image
        return theta(CompactSketch.heapify(Memory.wrap(HEX.parseHex(w[1]))));
      case "theta_v4": // image, written compressed
        byte[] v4 = CompactSketch.heapify(Memory.wrap(HEX.parseHex(w[1]))).toByteArrayCompressed();
        return HEX.formatHex(v4);
      case "theta_union": // lg_k, images
        Union union = SetOperation.builder().setNominalEntries(1 << Integer.parseInt(w[1])).buildUnion();
        for (int i = 2; i < w.length; i++) { union.union(thetaOf(w[i])); }
        return theta(union.getResult(true, null));
      case "theta_intersect":
        Intersection both = SetOperation.builder().buildIntersection();
        for (int i = 1; i < w.length; i++) { both.intersect(thetaOf(w[i])); }
        return theta(both.getResult(true, null));
      case "theta_minus":
        AnotB minus = SetOperation.builder().buildANotB();
        return theta(minus.aNotB(thetaOf(w[1]), thetaOf(w[2]), true, null));
      case "theta_jaccard":
        double[] j = JaccardSimilarity.jaccard(thetaOf(w[1]), thetaOf(w[2]));
        return j[0] + " " + j[1] + " " + j[2];
      default:
        throw new IllegalArgumentException(Arrays.toString(w));
    }
  }

  static Sketch thetaOf(String hex) {
    return CompactSketch.heapify(Memory.wrap(HEX.parseHex(hex)));
  }

  // updatable and compact image, estimate, composite estimate, bounds at 1, 2, 3 standard deviations
  static String hll(HllSketch s) {
    StringBuilder b = new StringBuilder(HEX.formatHex(s.toUpdatableByteArray()));
    b.append(' ').append(HEX.formatHex(s.toCompactByteArray()));
    b.append(' ').append(s.getEstimate()).append(' ').append(s.getCompositeEstimate());
    for (int d = 1; d <= 3; d++) { b.append(' ').append(s.getLowerBound(d)).append(' ').append(s.getUpperBound(d)); }
    return b.toString();
  }

  // image, estimate, bounds at 1, 2, 3 standard deviations
  static String theta(CompactSketch s) {
    StringBuilder b = new StringBuilder(HEX.formatHex(s.toByteArray())).append(' ').append(s.getEstimate());
    for (int d = 1; d <= 3; d++) { b.append(' ').append(s.getLowerBound(d)).append(' ').append(s.getUpperBound(d)); }
    return b.toString();
  }
}
