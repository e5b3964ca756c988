import Rules

extension SettingKind where Value == ListenerSettings {
    /// An entry of `listen`: an address, or a mapping.
    static var listener: SettingKind {
        let address = SettingKind<ListenAddress>.listenAddress
        return SettingKind(
            allowed: "address: \(address.allowed)", read: readListener, render: { renderListener($0) })
    }
}

@Sendable private func readListener(
    _ node: ConfigurationNode, _ problems: inout [SettingProblem]
) -> ListenerSettings? {
    if case .scalar = node.value, !node.isNull {
        return SettingKind<ListenAddress>.listenAddress.read(node, &problems).map { ListenerSettings($0) }
    }
    guard var reader = MappingReader(node, expected: "address: host:port", problems: &problems) else { return nil }
    let address = reader.requiredValue("address", .listenAddress)
    var settings = ListenerSettings(address ?? .unix("/"))
    settings.writtenName = reader.value("name", .listenerName)
    settings.tls = reader.value("tls", .listenerTLS)
    settings.protocols =
        reader.value("protocols", SettingKind<ListenerProtocol>.listenerProtocol.list()) ?? settings.protocols
    settings.proxyProtocol = reader.value("proxy_protocol", SettingKind<AddressRange>.addressRange.list()) ?? []
    if case .unix? = address {
        settings.mode = reader.value("mode", .fileMode)
        reader.refuse(
            "proxy_protocol", "the clients of a Unix socket have no address that could be trusted",
            hint: "leave it out")
    } else {
        reader.refuse("mode", "only a Unix socket has permissions", hint: "leave it out")
    }
    return reader.finish("key", into: &problems) ? settings : nil
}

private func renderListener(_ settings: ListenerSettings) -> String {
    var parts = ["address: \"\(settings.address)\""]
    if let name = settings.writtenName { parts.append("name: \"\(name)\"") }
    if let tls = settings.tls { parts.append("tls: \(SettingKind<ListenerTLSSettings>.listenerTLS.render(tls))") }
    if settings.protocols != ListenerProtocol.offered {
        parts.append("protocols: \(SettingKind<ListenerProtocol>.listenerProtocol.list().render(settings.protocols))")
    }
    if !settings.proxyProtocol.isEmpty {
        parts.append("proxy_protocol: \(SettingKind<AddressRange>.addressRange.list().render(settings.proxyProtocol))")
    }
    if let mode = settings.mode { parts.append("mode: \(SettingKind<UInt32>.fileMode.render(mode))") }
    return "{ \(parts.joined(separator: ", ")) }"
}

extension SettingKind where Value == ListenerTLSSettings {
    fileprivate static var listenerTLS: SettingKind {
        SettingKind(
            allowed: "certificate and key",
            read: { node, problems in
                let expected = "certificate and key"
                guard var reader = MappingReader(node, expected: expected, problems: &problems) else { return nil }
                let certificate = reader.requiredValue("certificate", SettingKind<String>.path("a PEM file"))
                let key = reader.requiredValue("key", SettingKind<String>.path("a PEM file"))
                var settings = ListenerTLSSettings(certificateFile: certificate ?? "", keyFile: key ?? "")
                settings.isRequired = reader.value("required", .flag) ?? false
                settings.clientAuthorityFile = reader.value("client_ca", SettingKind<String>.path("a PEM file"))
                settings.revocationFile = reader.value("crl", SettingKind<String>.path("a PEM file"))
                let demand = reader.value("client_certificate", SettingKind<ClientCertificateDemand>.choice)
                settings.clientCertificate = demand ?? .required
                if !reader.has("client_ca") {
                    reader.refuse("crl", "nobody is asked for a certificate", hint: "add client_ca")
                    reader.refuse("client_certificate", "nobody is asked for a certificate", hint: "add client_ca")
                }
                return reader.finish("key", into: &problems) ? settings : nil
            },
            render: { settings in
                var parts = ["certificate: \(settings.certificateFile)", "key: \(settings.keyFile)"]
                if settings.isRequired { parts.append("required: yes") }
                if let file = settings.clientAuthorityFile { parts.append("client_ca: \(file)") }
                if let file = settings.revocationFile { parts.append("crl: \(file)") }
                if settings.clientCertificate == .optional { parts.append("client_certificate: optional") }
                return "{ \(parts.joined(separator: ", ")) }"
            })
    }
}

extension SettingKind where Value == ListenerProtocol {
    fileprivate static var listenerProtocol: SettingKind {
        let choice = SettingKind<ListenerProtocol>.choice
        return .scalar(
            choice.allowed, parse: { ListenerProtocol(rawValue: $0) }, render: choice.render,
            hint: { text in
                if text == "http2" { return "HTTP/2 is not spoken with clients" }
                return nearestName(to: text, among: ListenerProtocol.allCases.map(\.rawValue)).map {
                    "did you mean \($0)?"
                }
            })
    }
}

extension SettingKind where Value == String {
    fileprivate static var listenerName: SettingKind {
        .scalar(
            "a name of 1 to 64 letters, digits, -, _ and .",
            parse: { text in
                let isWord = text.utf8.allSatisfy { byte in
                    switch byte {
                    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
                    default: false
                    }
                }
                return (1...64).contains(text.utf8.count) && isWord ? text : nil
            }, render: { $0 })
    }
}

extension SettingKind where Value == UInt32 {
    /// The permissions of a file, in octal as chmod(1) takes them.
    fileprivate static var fileMode: SettingKind {
        .scalar(
            "permissions in octal, such as 0660",
            parse: { text in
                guard (3...4).contains(text.utf8.count) else { return nil }
                return UInt32(text, radix: 8).flatMap { $0 <= 0o777 ? $0 : nil }
            }, render: { "0\(String($0, radix: 8))" })
    }
}
