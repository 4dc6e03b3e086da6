import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.InputStreamReader;
import quickfix.Acceptor;
import quickfix.Application;
import quickfix.DefaultMessageFactory;
import quickfix.Message;
import quickfix.MemoryStoreFactory;
import quickfix.ScreenLogFactory;
import quickfix.Session;
import quickfix.SessionID;
import quickfix.SessionSettings;
import quickfix.SocketAcceptor;

/** A dealer on QuickFIX/J. It prints what happens, and does what the lines of its input say. */
public class QuickFixDealer implements Application {
    private final java.util.Map<String, String> orders = new java.util.LinkedHashMap<>();
    private volatile boolean fills = true;
    private int executions = 0;

    public static void main(String[] words) throws Exception {
        String settings = "[default]\nConnectionType=acceptor\nStartTime=00:00:00\nEndTime=00:00:00\nHeartBtInt=30\n"
            + "CheckLatency=N\nUseDataDictionary=Y\nResetOnLogon=N\nSocketAcceptAddress=127.0.0.1\n"
            + "[session]\nBeginString=FIX.4.4\nSenderCompID=DEALER\nTargetCompID=BANK\nSocketAcceptPort=" + words[0] + "\n";
        QuickFixDealer dealer = new QuickFixDealer();
        Acceptor acceptor = new SocketAcceptor(dealer, new MemoryStoreFactory(),
            new SessionSettings(new ByteArrayInputStream(settings.getBytes())), new ScreenLogFactory(false, false, false),
            new DefaultMessageFactory());
        acceptor.start();
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            Session session = Session.lookupSession(acceptor.getSessions().get(0));
            switch (line) {
                case "hold" -> dealer.fills = false;
                case "fill" -> { dealer.fills = true; dealer.fillAll(session.getSessionID()); }
                case "gap" -> session.setNextSenderMsgSeqNum(session.getExpectedSenderNum() + 3);
                case "forget" -> session.setNextTargetMsgSeqNum(Math.max(1, session.getExpectedTargetNum() - 2));
                case "logout" -> session.logout("back in a minute");
                case "logon" -> session.logon();
                default -> { acceptor.stop(); System.exit(0); }
            }
            say("did " + line);
        }
    }

    private static synchronized void say(String text) {
        System.out.println(text.replace('\u0001', '|'));
        System.out.flush();
    }

    public void onCreate(SessionID id) { }
    public void onLogon(SessionID id) { say("logon"); }
    public void onLogout(SessionID id) { say("logout"); }
    public void toApp(Message message, SessionID id) { say("out " + message); }
    public void fromAdmin(Message message, SessionID id) { say("in " + message); }
    public void toAdmin(Message message, SessionID id) { say("out " + message); }

    public void fromApp(Message message, SessionID id) {
        say("in " + message);
        try {
            String type = message.getHeader().getString(35), order = message.getString(11);
            if (type.equals("D")) {
                orders.put(order, message.toString());
                report(message, order, "0", "0", 0, id);
                if (fills) fillAll(id);
            } else if (type.equals("H")) {
                String known = orders.get(order);
                String status = known == null ? "8" : known.equals("filled") ? "2" : "0";
                report(message, order, "I", status, 0, id);
            }
        } catch (Exception error) {
            say("failed " + error);
        }
    }

    private void fillAll(SessionID id) {
        for (var each : orders.entrySet()) {
            if (each.getValue().equals("filled")) continue;
            try {
                Message order = new Message(each.getValue(), null, false);
                each.setValue("filled");
                report(order, each.getKey(), "F", "2", order.getInt(38), id);
            } catch (Exception error) {
                say("failed " + error);
            }
        }
    }

    private void report(Message about, String order, String kind, String status, int face, SessionID id) throws Exception {
        Message report = new Message();
        report.getHeader().setString(35, "8");
        report.setString(37, "Q-" + order.substring(0, 8));
        report.setString(11, order);
        report.setString(17, "X" + ++executions);
        report.setString(150, kind);
        report.setString(39, status);
        report.setString(55, "[N/A]");
        report.setString(48, about.getString(48));
        report.setString(22, "1");
        report.setString(54, about.getString(54));
        report.setInt(151, 0);
        report.setInt(14, status.equals("2") && about.isSetField(38) ? about.getInt(38) : face);
        report.setInt(6, 0);
        if (face > 0) {
            java.math.BigDecimal price = about.getDecimal(44);
            java.math.BigDecimal money = price.multiply(java.math.BigDecimal.valueOf(face)).movePointLeft(2)
                .setScale(2, java.math.RoundingMode.HALF_UP);
            report.setInt(32, face);
            report.setDecimal(31, price);
            report.setString(381, money.toPlainString());
            report.setString(64, about.getString(64));
            report.setString(60, about.getString(60));
        }
        Session.sendToTarget(report, id);
    }
}
