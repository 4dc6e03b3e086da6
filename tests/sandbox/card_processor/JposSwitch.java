import java.io.BufferedReader;
import java.io.InputStreamReader;
import org.jpos.iso.ISOMsg;
import org.jpos.iso.ISOPackager;
import org.jpos.iso.ISOUtil;
import org.jpos.iso.channel.PostChannel;

/** Sends each line of its input, such as "0800 7=0602130501 11=000001 70=301", with jPOS, and prints the response. */
class JposSwitch {
    public static void main(String[] args) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            var packager = (ISOPackager) Class.forName("org.jpos.iso.packager." + words[0]).getDeclaredConstructor().newInstance();
            var channel = new PostChannel("127.0.0.1", Integer.parseInt(args[0]), packager);
            channel.connect();
            var request = new ISOMsg(words[1]);
            for (int nth = 2; nth < words.length; nth++) {
                String[] field = words[nth].split("=", 2);
                if (field[0].equals("52")) {
                    request.set(52, ISOUtil.hex2byte(field[1]));
                } else {
                    request.set(field[0], field[1].replace('_', ' '));
                }
            }
            channel.send(request);
            ISOMsg response = channel.receive();
            var out = new StringBuilder(response.getMTI());
            for (int number = 2; number <= response.getMaxField(); number++) {
                if (response.hasField(number)) {
                    out.append(' ').append(number).append('=').append(response.getString(number).strip());
                }
            }
            System.out.println(out);
            channel.disconnect();
        }
    }
}
