import Origins
import Rules

/// `tls` of a rule for origins.
extension SettingKind where Value == OriginTLS {
    static var originTLS: SettingKind {
        let allowed = "keys such as ca_file, certificate, pin and server_name"
        return SettingKind(
            allowed: allowed,
            read: { node, problems in
                guard var reader = MappingReader(node, expected: allowed, problems: &problems) else { return nil }
                let tls = readOriginTLS(&reader)
                return reader.finish("key", into: &problems) ? tls : nil
            }, render: { "\($0)" })
    }
}

private func readOriginTLS(_ reader: inout MappingReader) -> OriginTLS {
    var tls = OriginTLS()
    tls.authorityFile = reader.value("ca_file", SettingKind<String>.path("a PEM file"))
    tls.identity = readIdentity(&reader)
    tls.passwordFile = reader.value("password_file", SettingKind<String>.path("a file"))
    tls.pins = reader.value("pin", SettingKind<PublicKeyPin>.pin.list()) ?? []
    tls.minVersion = reader.value("min_version", SettingKind<TLSVersion>.choice)
    tls.maxVersion = reader.value("max_version", SettingKind<TLSVersion>.choice)
    tls.serverName = reader.value("server_name", .serverName)
    tls.verification = reader.value("verify", .flag) == false ? .none : .required
    if tls.passwordFile != nil, tls.identity == nil {
        reader.refuse("password_file", "there is nothing to open with it", hint: "name pkcs12, or certificate and key")
    }
    if let minimum = tls.minVersion, let maximum = tls.maxVersion, minimum > maximum {
        reader.refuse("min_version", "\(minimum.rawValue) is above max_version, which is \(maximum.rawValue)")
    }
    if tls.verification == .none, tls.authorityFile != nil {
        reader.refuse(
            "verify", "without verification, ca_file has no effect", hint: "leave verify out: ca_file is trusted then")
    }
    return tls
}

private func readIdentity(_ reader: inout MappingReader) -> OriginTLS.Identity? {
    let path = SettingKind<String>.path("a PEM file")
    let certificate = reader.value("certificate", path)
    let key = reader.value("key", path)
    let bundle = reader.value("pkcs12", .path("a PKCS#12 file"))
    if bundle != nil {
        for other in ["certificate", "key"] {
            reader.refuse(other, "pkcs12 has a certificate and its key already", hint: "name one of the two forms")
        }
    } else if key != nil, certificate == nil {
        reader.refuse("key", "there is no certificate for it", hint: "add certificate: FILE")
    }
    return bundle.map { .pkcs12($0) } ?? certificate.map { .pem(certificate: $0, key: key ?? $0) }
}

extension MappingReader {
    /// Checks what a rule with `tls` may match.
    ///
    /// - Parameter key: of `tls` in this mapping.
    mutating func requireNamedOrigins(of conditions: RuleConditions, for tls: OriginTLS, _ key: String) {
        // Verification is off for named hosts only, so that nobody turns it off for more than the one that needs it.
        if tls.verification == .none, conditions.hosts.isEmpty || !conditions.hosts.allSatisfy(\.isOneHost) {
            refuse(
                key, "verify: no is for named hosts only, not for patterns",
                hint: "name each host in match, or trust the origin with ca_file")
        }
        guard tls.identity != nil else { return }
        if conditions.hosts.isEmpty || conditions.hosts.contains(.any) {
            refuse(key, "names no host: every origin could ask for the certificate", hint: "add host: NAME to match")
        }
    }
}

extension HostPattern {
    fileprivate var isOneHost: Bool {
        switch self {
        case .exact, .address: true
        case .any, .below: false
        }
    }
}

extension SettingKind where Value == PublicKeyPin {
    fileprivate static var pin: SettingKind {
        scalar(
            "sha256/ and 44 characters of base 64", parse: { PublicKeyPin($0) }, render: { "\($0)" },
            hint: { text in
                if text.hasPrefix("sha256//") { return "write one slash" }
                if PublicKeyPin("sha256/" + text) != nil { return "did you mean sha256/\(text)?" }
                return
                    "openssl x509 -in FILE -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64 prints it"
            })
    }
}

extension SettingKind where Value == String {
    fileprivate static var serverName: SettingKind {
        scalar(
            "the name of a host, or an address",
            parse: { text in DestinationHost(text.utf8).map { "\($0)" } }, render: { $0 })
    }
}
