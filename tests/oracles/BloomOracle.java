import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import org.apache.spark.util.sketch.BloomFilter;

/**
 * Spark's Bloom filter, one command a line on standard input, one answer a line:
 * `build VERSION KIND CAPACITY FPP SEED VALUES` and `merge IMAGE IMAGE` give an image, `ask KIND IMAGE VALUES`
 * a digit (1 found, 0 not) a value. KIND is long, string or binary; images, texts and binary values are base64;
 * VALUES are separated by commas.
 */
public class BloomOracle {
  static byte[] bytes(String text) { return Base64.getDecoder().decode(text); }

  static Object value(String kind, String text) {
    if (kind.equals("long")) { return Long.parseLong(text); }
    return kind.equals("binary") ? bytes(text) : new String(bytes(text), StandardCharsets.UTF_8);
  }

  static BloomFilter read(String text) throws Exception {
    return BloomFilter.readFrom(new ByteArrayInputStream(bytes(text)));
  }

  static String image(BloomFilter filter) throws Exception {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    filter.writeTo(out);
    return Base64.getEncoder().encodeToString(out.toByteArray());
  }

  static String answer(String[] words) throws Exception {
    if (words[0].equals("merge")) { return image(read(words[1]).mergeInPlace(read(words[2]))); }
    if (words[0].equals("ask")) {
      BloomFilter filter = read(words[2]);
      StringBuilder out = new StringBuilder();
      for (String value : words[3].split(",", -1)) {
        out.append(filter.mightContain(value(words[1], value)) ? '1' : '0');
      }
      return out.toString();
    }
    long capacity = Long.parseLong(words[3]);
    long bits = BloomFilter.optimalNumOfBits(capacity, Double.parseDouble(words[4]));
    BloomFilter.Version version = BloomFilter.Version.valueOf(words[1]);
    BloomFilter filter = BloomFilter.create(version, capacity, bits, Integer.parseInt(words[5]));
    for (String value : words[6].split(",", -1)) { filter.put(value(words[2], value)); }
    return image(filter);
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      System.out.println(answer(line.split(" ", -1)));
    }
  }
}
