import java.io.FileInputStream;
import org.verapdf.gf.foundry.VeraGreenfieldFoundryProvider;
import org.verapdf.pdfa.*;
import org.verapdf.pdfa.flavours.PDFAFlavour;
import org.verapdf.pdfa.results.*;

/** Prints of a file whether it is PDF/A-3a and PDF/UA-1, and which rules it breaks. */
public class Vera {
  public static void main(String[] files) throws Exception {
    VeraGreenfieldFoundryProvider.initialise();
    for (PDFAFlavour flavour : new PDFAFlavour[] {PDFAFlavour.PDFA_3_A, PDFAFlavour.PDFUA_1})
      try (PDFAParser parser = Foundries.defaultInstance().createParser(new FileInputStream(files[0]), flavour);
          PDFAValidator validator = Foundries.defaultInstance().createValidator(flavour, false)) {
        ValidationResult result = validator.validate(parser);
        System.out.println(flavour.getId() + " " + result.isCompliant());
        for (TestAssertion each : result.getTestAssertions())
          if (each.getStatus() == TestAssertion.Status.FAILED)
            System.out.println(each.getRuleId() + " " + each.getMessage());
      }
  }
}
