import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.TreeMap;
import org.apache.datasketches.common.ArrayOfItemsSerDe;
import org.apache.datasketches.common.ArrayOfLongsSerDe;
import org.apache.datasketches.common.ArrayOfStringsSerDe;
import org.apache.datasketches.frequencies.ErrorType;
import org.apache.datasketches.frequencies.ItemsSketch;
import org.apache.datasketches.frequencies.LongsSketch;
import org.apache.datasketches.memory.Memory;

/**
 * datasketches-java's frequent items, one command a line on standard input, one answer a line:
 * `build KIND SIZE VALUES` gives an image; `merge KIND IMAGE IMAGE` gives one; `rows KIND IMAGE` gives weight,
 * error and then item:lower:upper of every counter. KIND is string, long (ItemsSketch with those serialisers,
 * as Spark has them) or plain (LongsSketch). Images and UTF-8 texts are base64; VALUES are separated by commas.
 */
public class FrequentItemsOracle {
  static byte[] bytes(String text) { return Base64.getDecoder().decode(text); }

  static String image(byte[] bytes) { return Base64.getEncoder().encodeToString(bytes); }

  @SuppressWarnings("unchecked")
  static <T> ArrayOfItemsSerDe<T> serDe(String kind) {
    return (ArrayOfItemsSerDe<T>) (kind.equals("string") ? new ArrayOfStringsSerDe() : new ArrayOfLongsSerDe());
  }

  static Object item(String kind, String text) {
    if (kind.equals("string")) { return new String(bytes(text), StandardCharsets.UTF_8); }
    return Long.parseLong(text);
  }

  static String text(Object item) {
    if (item instanceof String) { return image(((String) item).getBytes(StandardCharsets.UTF_8)); }
    return item.toString();
  }

  static String plain(String[] words) {
    if (words[0].equals("build")) {
      LongsSketch sketch = new LongsSketch(Integer.parseInt(words[2]));
      for (String value : words[3].split(",")) { sketch.update(Long.parseLong(value)); }
      return image(sketch.toByteArray());
    }
    LongsSketch sketch = LongsSketch.getInstance(Memory.wrap(bytes(words[2])));
    if (words[0].equals("merge")) {
      return image(sketch.merge(LongsSketch.getInstance(Memory.wrap(bytes(words[3])))).toByteArray());
    }
    StringBuilder out = new StringBuilder(sketch.getStreamLength() + " " + sketch.getMaximumError());
    for (LongsSketch.Row row : sketch.getFrequentItems(-1, ErrorType.NO_FALSE_NEGATIVES)) {
      out.append(" " + row.getItem() + ":" + row.getLowerBound() + ":" + row.getUpperBound());
    }
    return out.toString();
  }

  static String answer(String[] words) {
    String kind = words[1];
    if (kind.equals("plain")) { return plain(words); }
    ArrayOfItemsSerDe<Object> serDe = serDe(kind);
    if (words[0].equals("build")) {
      ItemsSketch<Object> sketch = new ItemsSketch<>(Integer.parseInt(words[2]));
      for (String value : words[3].split(",", -1)) { sketch.update(item(kind, value)); }
      return image(sketch.toByteArray(serDe));
    }
    ItemsSketch<Object> sketch = ItemsSketch.getInstance(Memory.wrap(bytes(words[2])), serDe);
    if (words[0].equals("merge")) {
      return image(sketch.merge(ItemsSketch.getInstance(Memory.wrap(bytes(words[3])), serDe)).toByteArray(serDe));
    }
    StringBuilder out = new StringBuilder(sketch.getStreamLength() + " " + sketch.getMaximumError());
    for (ItemsSketch.Row<Object> row : sketch.getFrequentItems(-1, ErrorType.NO_FALSE_NEGATIVES)) {
      out.append(" " + text(row.getItem()) + ":" + row.getLowerBound() + ":" + row.getUpperBound());
    }
    return out.toString();
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(answer(line.split(" ")));
    }
  }
}
