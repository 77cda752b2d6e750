import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.util.sketch.CountMinSketch;

/**
 * Spark's count-min sketch, one command a line on standard input, one answer a line:
 * `build KIND EPS CONFIDENCE SEED VALUES` and `merge IMAGE IMAGE` give an image, `ask KIND IMAGE VALUES` gives
 * the total and the estimates. KIND is long, string or binary; images, texts and binary values are base64;
 * VALUES are separated by commas.
 */
public class CountMinOracle {
  static byte[] bytes(String text) { return Base64.getDecoder().decode(text); }

  static Object value(String kind, String text) {
    if (kind.equals("long")) { return Long.parseLong(text); }
    return kind.equals("binary") ? bytes(text) : new String(bytes(text), StandardCharsets.UTF_8);
  }

  static CountMinSketch read(String text) throws Exception {
    return CountMinSketch.readFrom(new ByteArrayInputStream(bytes(text)));
  }

  static String answer(String[] words) throws Exception {
    if (words[0].equals("merge")) {
      return Base64.getEncoder().encodeToString(read(words[1]).mergeInPlace(read(words[2])).toByteArray());
    }
    if (words[0].equals("ask")) {
      CountMinSketch sketch = read(words[2]);
      StringBuilder out = new StringBuilder().append(sketch.totalCount());
      for (String value : words[3].split(",", -1)) {
        out.append(' ').append(sketch.estimateCount(value(words[1], value)));
      }
      return out.toString();
    }
    double eps = Double.parseDouble(words[2]);
    double confidence = Double.parseDouble(words[3]);
    CountMinSketch sketch = CountMinSketch.create(eps, confidence, Integer.parseInt(words[4]));
    for (String value : words[5].split(",", -1)) { sketch.add(value(words[1], value)); }
    return Base64.getEncoder().encodeToString(sketch.toByteArray());
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(answer(line.split(" ", -1)));
    }
  }
}
