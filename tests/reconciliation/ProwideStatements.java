import com.prowidesoftware.swift.model.mx.MxCamt05300108;
import com.prowidesoftware.swift.model.mx.MxSemt00200111;
import java.nio.file.Files;
import java.nio.file.Path;

/** Reads a camt.053 and a semt.002 with Prowide, prints what it found, and writes both as Prowide writes them. */
class ProwideStatements {
    public static void main(String[] args) throws Exception {
        var folder = Path.of(args[0]);
        var money = MxCamt05300108.parse(Files.readString(folder.resolve("camt053.xml")));
        var statement = money.getBkToCstmrStmt().getStmt().get(0);
        System.out.println("account " + statement.getAcct().getId().getOthr().getId());
        for (var balance : statement.getBal()) {
            System.out.println("balance " + balance.getTp().getCdOrPrtry().getCd() + " " + balance.getAmt().getValue());
        }
        for (var entry : statement.getNtry()) {
            System.out.println("entry " + entry.getNtryRef() + " " + entry.getCdtDbtInd() + " " + entry.getAmt().getValue()
                + " " + entry.getSts().getCd() + " " + entry.getValDt().getDt() + " " + entry.getBkTxCd().getPrtry().getCd());
        }
        Files.writeString(folder.resolve("camt053.prowide.xml"), money.message());
        var holdings = MxSemt00200111.parse(Files.readString(folder.resolve("semt002.xml")));
        var report = holdings.getSctiesBalCtdyRpt();
        System.out.println("safe " + report.getSfkpgAcct().getId() + " " + report.getStmtGnlDtls().getStmtDtTm().getDt()
            + " " + report.getStmtGnlDtls().getRptNb().getLng());
        for (var held : report.getBalForAcct()) {
            System.out.println("held " + held.getFinInstrmId().getOthrId().get(0).getId() + " " + held.getAggtBal().getShrtLngInd()
                + " " + held.getAggtBal().getQty().getQty().getQty().getFaceAmt());
        }
        Files.writeString(folder.resolve("semt002.prowide.xml"), holdings.message());
    }
}
