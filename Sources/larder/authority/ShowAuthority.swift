import Provisioning
import TLS

extension AuthorityWork {
    /// `larder ca show`: what is in `intermediate.pem`, and in the authority that is to replace it.
    func show() throws {
        let certificates = try directory.certificates()
        let (issuer, roots) = (certificates[0], certificates.filter(\.isSelfSigned))
        let next = fileExists(directory.next.intermediate) ? try directory.next.certificates().first : nil
        guard !arguments.has(.json) else {
            return printJSON { json in
                json.member("file", directory.intermediate)
                json.key("issuer")
                json.certificate(issuer, at: now)
                json.key("roots")
                json.array { for root in roots { $0.certificate(root, at: now) } }
                json.key("next")
                if let next { json.certificate(next, at: now) } else { json.null() }
            }
        }
        console.print(directory.intermediate)
        if !issuer.isSelfSigned { describe("issuer", issuer) }
        for root in roots { describe("root", root) }
        if roots.isEmpty { console.print("no root: Larder has none to hand out to clients") }
        if let next {
            describe("next", next)
            console.print("A rotation is under way: larder ca rotate --finish uses the next authority.")
        }
        if let first = certificates.first, first.daysLeft(at: now) < 30 {
            console.error("larder: warning: the authority ends soon; run larder ca rotate")
        }
    }

    private func describe(_ role: String, _ certificate: CertificateDescription) {
        console.print("\(padded(role, 8))\(certificate.subject)")
        console.print("        sha256       \(certificate.fingerprint)")
        console.print("        key          \(certificate.keyKind)")
        console.print("        valid        \(certificate.validityText(at: now))")
        console.print("        may certify  \(certificate.scopeText)")
    }
}
