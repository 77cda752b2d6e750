import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Base64;
import java.util.Random;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.kll.KllFloatsSketch;
import org.apache.datasketches.kll.KllLongsSketch;
import org.apache.datasketches.kll.KllSketch;
import org.apache.datasketches.memory.Memory;

/**
 * datasketches-java's KLL, one command a line on standard input, one answer a line:
 * `build KIND K SEED VALUES`, `merge KIND SEED IMAGE IMAGE ...`, `add KIND SEED IMAGE VALUES` give an image;
 * `weigh KIND K SEED VALUES WEIGHTS` gives the image of values with their weights (longs);
 * `ranks KIND IMAGE VALUES` gives n and the ranks. Images and little-endian values are base64.
 * The library's one shared Random is seeded for each command.
 */
public class KllOracle {
  static void seed(String seed) throws Exception {
    Field field = KllSketch.class.getDeclaredField("random");
    field.setAccessible(true);
    ((Random) field.get(null)).setSeed(Long.parseLong(seed));
  }

  static byte[] bytes(String text) {
    return Base64.getDecoder().decode(text.equals("-") ? "" : text);
  }

  static ByteBuffer values(String text) {
    return ByteBuffer.wrap(bytes(text)).order(ByteOrder.LITTLE_ENDIAN);
  }

  static KllSketch make(String kind, int k) {
    if (kind.equals("double")) { return KllDoublesSketch.newHeapInstance(k); }
    if (kind.equals("float")) { return KllFloatsSketch.newHeapInstance(k); }
    return KllLongsSketch.newHeapInstance(k);
  }

  static KllSketch read(String kind, String image) {
    Memory memory = Memory.wrap(bytes(image));
    if (kind.equals("double")) { return KllDoublesSketch.heapify(memory); }
    if (kind.equals("float")) { return KllFloatsSketch.heapify(memory); }
    return KllLongsSketch.heapify(memory);
  }

  static void add(KllSketch sketch, ByteBuffer values) {
    while (values.hasRemaining()) {
      if (sketch instanceof KllDoublesSketch) { ((KllDoublesSketch) sketch).update(values.getDouble()); }
      else if (sketch instanceof KllFloatsSketch) { ((KllFloatsSketch) sketch).update(values.getFloat()); }
      else { ((KllLongsSketch) sketch).update(values.getLong()); }
    }
  }

  static void weigh(KllSketch sketch, ByteBuffer values, ByteBuffer weights) {
    while (values.hasRemaining()) {
      long weight = weights.getLong();
      if (sketch instanceof KllDoublesSketch) { ((KllDoublesSketch) sketch).update(values.getDouble(), weight); }
      else if (sketch instanceof KllFloatsSketch) { ((KllFloatsSketch) sketch).update(values.getFloat(), weight); }
      else { ((KllLongsSketch) sketch).update(values.getLong(), weight); }
    }
  }

  static double rank(KllSketch sketch, ByteBuffer values) {
    if (sketch instanceof KllDoublesSketch) { return ((KllDoublesSketch) sketch).getRank(values.getDouble()); }
    if (sketch instanceof KllFloatsSketch) { return ((KllFloatsSketch) sketch).getRank(values.getFloat()); }
    return ((KllLongsSketch) sketch).getRank(values.getLong());
  }

  static String image(KllSketch sketch) {
    byte[] image;
    if (sketch instanceof KllDoublesSketch) { image = ((KllDoublesSketch) sketch).toByteArray(); }
    else if (sketch instanceof KllFloatsSketch) { image = ((KllFloatsSketch) sketch).toByteArray(); }
    else { image = ((KllLongsSketch) sketch).toByteArray(); }
    return Base64.getEncoder().encodeToString(image);
  }

  static String answer(String[] words) throws Exception {
    String kind = words[1];
    if (words[0].equals("build")) {
      seed(words[3]);
      KllSketch sketch = make(kind, Integer.parseInt(words[2]));
      add(sketch, values(words[4]));
      return image(sketch);
    }
    if (words[0].equals("weigh")) {
      seed(words[3]);
      KllSketch sketch = make(kind, Integer.parseInt(words[2]));
      weigh(sketch, values(words[4]), values(words[5]));
      return image(sketch);
    }
    if (words[0].equals("merge")) {
      seed(words[2]);
      KllSketch sketch = read(kind, words[3]);
      for (String other : Arrays.copyOfRange(words, 4, words.length)) { sketch.merge(read(kind, other)); }
      return image(sketch);
    }
    if (words[0].equals("add")) {
      seed(words[2]);
      KllSketch sketch = read(kind, words[3]);
      add(sketch, values(words[4]));
      return image(sketch);
    }
    KllSketch sketch = read(kind, words[2]);
    StringBuilder text = new StringBuilder().append(sketch.getN());
    ByteBuffer points = values(words[3]);
    while (points.hasRemaining()) { text.append(' ').append(rank(sketch, points)); }
    return text.toString();
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(answer(line.split(" ")));
    }
  }
}
