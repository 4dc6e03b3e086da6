import com.prowidesoftware.swift.model.mx.AbstractMX;
import com.prowidesoftware.swift.model.mx.MxSese02000107;
import com.prowidesoftware.swift.model.mx.MxSese02300111;
import com.prowidesoftware.swift.model.mx.MxSese02400112;
import com.prowidesoftware.swift.model.mx.MxSese02500111;
import com.prowidesoftware.swift.model.mx.MxSese02700106;
import com.prowidesoftware.swift.model.mx.dic.*;
import java.math.BigDecimal;
import java.nio.file.*;
import java.time.LocalDate;

/** Prints what it reads of instructions in files, and answers each with a status, a confirmation or an end. */
public class ProwideCustodian {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            AbstractMX read = AbstractMX.parse(Files.readString(Path.of(file)));
            if (read instanceof MxSese02000107 cancellation) cancelled(cancellation);
            else instructed((MxSese02300111) read);
        }
    }

    static void instructed(MxSese02300111 read) {
        var it = read.getSctiesSttlmTxInstr();
        var type = it.getSttlmTpAndAddtlParams();
        var quantity = it.getQtyAndAcctDtls();
        var receives = type.getSctiesMvmntTp() == ReceiveDelivery1Code.RECE;
        var other = receives ? it.getDlvrgSttlmPties() : it.getRcvgSttlmPties();
        var amount = it.getSttlmAmt();
        System.out.println("READ " + String.join("|", it.getTxId(), type.getSctiesMvmntTp().name(), type.getPmt().name(),
            it.getTradDtls().getSttlmDt().getDt().getDt().toString(), it.getFinInstrmId().getOthrId().get(0).getId(),
            it.getFinInstrmId().getOthrId().get(0).getTp().getCd(),
            quantity.getSttlmQty().getQty().getFaceAmt().toPlainString(), quantity.getSfkpgAcct().getId(),
            it.getSttlmParams().getSctiesTxTp().getCd().name(), other.getDpstry().getId().getAnyBIC(),
            other.getPty1().getId().getNmAndAdr().getNm(),
            amount == null ? "free" : amount.getAmt().getCcy() + amount.getAmt().getValue() + amount.getCdtDbtInd()));
        var advice = new SecuritiesSettlementTransactionStatusAdviceV12();
        advice.setTxId(new TransactionIdentifications47().setAcctOwnrTxId(it.getTxId()));
        advice.setMtchgSts(new MatchingStatus24Choice().setMtchd(new ProprietaryReason4()));
        print(new MxSese02400112().setSctiesSttlmTxStsAdvc(advice));
        var confirmation = new SecuritiesSettlementTransactionConfirmationV11();
        confirmation.setTxIdDtls(new SettlementTypeAndIdentification27().setAcctOwnrTxId(it.getTxId())
            .setAcctSvcrTxId("PROWIDE-1").setSctiesMvmntTp(type.getSctiesMvmntTp()).setPmt(type.getPmt()));
        var day = new SettlementDate18Choice().setDt(new DateAndDateTime2Choice().setDt(LocalDate.of(2025, 6, 3)));
        confirmation.setTradDtls(new SecuritiesTradeDetails118().setFctvSttlmDt(day));
        confirmation.setFinInstrmId(it.getFinInstrmId());
        var settled = new Quantity51Choice().setQty(
            new FinancialInstrumentQuantity33Choice().setFaceAmt(quantity.getSttlmQty().getQty().getFaceAmt()));
        confirmation.setQtyAndAcctDtls(new QuantityAndAccount96().setSttldQty(settled).setSfkpgAcct(quantity.getSfkpgAcct()));
        if (amount != null) confirmation.setSttldAmt(amount);
        print(new MxSese02500111().setSctiesSttlmTxConf(confirmation));
    }

    static void cancelled(MxSese02000107 read) {
        var it = read.getSctiesTxCxlReq().getAcctOwnrTxId();
        System.out.println("READ " + it.getSctiesSttlmTxId().getTxId() + "|" + read.getSctiesTxCxlReq().getSfkpgAcct().getId());
        var advice = new SecuritiesTransactionCancellationRequestStatusAdviceV06();
        advice.setTxId(new TransactionIdentifications30().setAcctOwnrTxId(
            new References44Choice().setSctiesSttlmTxId(it.getSctiesSttlmTxId())));
        advice.setPrcgSts(new ProcessingStatus54Choice().setDnd(new DeniedStatus15Choice().addRsn(
            new DeniedReason10().setCd(new DeniedReason15Choice().setCd(DeniedReason6Code.DSET)))));
        print(new MxSese02700106().setSctiesTxCxlReqStsAdvc(advice));
    }

    static void print(AbstractMX message) {
        System.out.println("WROTE " + message.document().replace("\n", " ").replace("\r", " "));
    }
}
