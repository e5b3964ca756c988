import Admin
import TLS

extension CertificateDescription {
    /// `example.org and below, 192.0.2.1/32`, or that it may certify everything.
    var scopeText: String {
        guard let constraints else { return "every name (no constraints)" }
        let names =
            constraints.permittedNames.isEmpty ? ["every name"] : constraints.usableNames.map { "\($0) and below" }
        let permitted = names + constraints.usableAddresses.map(\.text)
        let excluded = constraints.excludedNames.map { "\($0) and below" } + constraints.excludedAddresses.map(\.text)
        if constraints.excludedNames.isEmpty, constraints.excludedAddresses == [.allIPv4, .allIPv6] {
            return permitted.joined(separator: ", ") + "; no addresses"
        }
        return permitted.joined(separator: ", ")
            + (excluded.isEmpty ? "" : "; not \(excluded.joined(separator: ", "))")
            + (constraints.permittedAddresses.isEmpty ? "" : "; no other addresses")
    }

    /// Whole days that are left; 0 if the time has passed.
    func daysLeft(at now: Int64) -> Int64 { max(0, (notAfter - now) / 86_400) }

    func validityText(at now: Int64) -> String {
        guard now <= notAfter else { return "EXPIRED on \(dateText(notAfter))" }
        return "until \(dateText(notAfter)), \(counted(daysLeft(at: now))) days left"
    }
}

extension JSONWriter {
    /// `{"subject":…,"sha256":…,"not_before":…,"not_after":…,"days_left":…,"constraints":…}`, times in seconds since 1970.
    mutating func certificate(_ certificate: CertificateDescription, at now: Int64) {
        object { json in
            json.member("subject", certificate.subject)
            json.member("sha256", certificate.fingerprint)
            json.member("key", certificate.keyKind)
            json.member("not_before", certificate.notBefore)
            json.member("not_after", certificate.notAfter)
            json.member("days_left", certificate.daysLeft(at: now))
            json.key("constraints")
            guard let constraints = certificate.constraints else { return json.null() }
            json.object { json in
                json.strings("permitted_names", constraints.permittedNames)
                json.strings("excluded_names", constraints.excludedNames)
                json.strings("permitted_addresses", constraints.permittedAddresses.map(\.text))
                json.strings("excluded_addresses", constraints.excludedAddresses.map(\.text))
            }
        }
    }

    mutating func strings(_ name: String, _ values: [String]) {
        key(name)
        array { for value in values { $0.string(value) } }
    }
}

extension AuthorityWork {
    func printJSON(_ members: (inout JSONWriter) -> Void) {
        var writer = JSONWriter()
        writer.object(members)
        console.print(String(decoding: writer.bytes, as: UTF8.self))
    }
}
