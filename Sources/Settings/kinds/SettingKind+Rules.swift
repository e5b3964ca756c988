import Message
import Rules

extension SettingKind where Value == AddressRange {
    static var addressRange: SettingKind {
        .scalar(
            "an address or a range such as 10.0.0.0/8", parse: { AddressRange($0) },
            render: { $0.first.isV4 ? "\($0)" : "\"\($0)\"" }, hint: networkHint)
    }

    /// Explains the usual mistakes: bits beyond the prefix, or a name.
    @Sendable private static func networkHint(_ text: String) -> String? {
        let parts = text.split(separator: "/", maxSplits: 1)
        guard let address = parts.first.flatMap({ IPAddress(strict: $0.utf8) }) else {
            return text.utf8.contains { (0x67...0x7A).contains($0) } ? "host names are not resolved here" : nil
        }
        guard parts.count == 2, let length = parseCount(String(parts[1]), in: 0...(address.isV4 ? 32 : 128)) else {
            return nil
        }
        return AddressRange(containing: address, prefixLength: length).map { "the network that contains it is \($0)" }
    }
}

extension AddressRange {
    /// The range with a prefix of this length around an address. Returns nil if the length is out of bounds.
    fileprivate init?(containing address: IPAddress, prefixLength: Int) {
        if let v4 = address.v4 {
            self.init(IPAddress(v4: v4 & (~0 << UInt32(32 - prefixLength))), prefixLength: prefixLength)
            return
        }
        let (high, low) = address.v6
        let first = IPAddress(
            v6: prefixLength <= 64 ? high & (~0 << UInt64(64 - prefixLength)) : high,
            low: prefixLength <= 64 ? 0 : low & (~0 << UInt64(128 - prefixLength)))
        self.init(first, prefixLength: prefixLength)
    }
}

extension SettingKind where Value == ClosedRange<UInt16> {
    /// `443` or `8000-8999`.
    static var portRange: SettingKind {
        .scalar(
            "a port from 1 to 65535, or a range such as 8000-8999",
            parse: { text in
                let parts = text.split(separator: "-", omittingEmptySubsequences: false)
                let ports = parts.compactMap { parseCount(String($0), in: 1...65535) }.map(UInt16.init)
                guard ports.count == parts.count, (1...2).contains(ports.count), ports[0] <= ports[ports.count - 1]
                else { return nil }
                return ports[0]...ports[ports.count - 1]
            }, render: { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" })
    }
}

extension SettingKind where Value == HostPattern {
    static var hostPattern: SettingKind {
        .scalar(
            "a host name, *.name, * or an address", parse: { HostPattern($0) },
            render: { $0.description.hasPrefix("*") || $0.description.contains(":") ? "\"\($0)\"" : "\($0)" },
            hint: { text in
                if text.contains("://") { return "only a host, without scheme and path" }
                if text.contains("/") { return "networks belong in address:" }
                return text.contains(":") ? "ports belong in port:" : nil
            })
    }
}

extension SettingKind where Value == String {
    /// A method (RFC 9110 §9.1). Methods are case-sensitive, and all registered ones are in upper case.
    static var method: SettingKind {
        .scalar(
            "a method in upper case", parse: { text in isMethodOfRules(text) ? text : nil }, render: { $0 },
            hint: { text in isMethodOfRules(text.uppercased()) ? "methods are upper case: \(text.uppercased())" : nil })
    }
}

extension SettingKind where Value == PathPattern {
    static var pathPattern: SettingKind {
        .scalar(
            "a path such as /pool/* or *.deb", parse: { PathPattern($0) },
            render: { $0.description.hasPrefix("*") ? "\"\($0)\"" : "\($0)" },
            hint: { text in
                if text.contains("://") { return "only a path, without scheme and host" }
                if text.contains("?") { return "a path does not include the query" }
                if text.utf8.contains(where: { $0 >= 0x80 || $0 == 0x20 }) { return "percent-encode it, as clients do" }
                return text.first.map { $0 == "/" || $0 == "*" } ?? true ? nil : "did you mean /\(text)?"
            })
    }
}

extension SettingKind where Value == MediaTypePattern {
    static var mediaType: SettingKind {
        .scalar(
            "a media type such as text/html, text/* or application/*+json", parse: { MediaTypePattern($0) },
            render: { $0.description.hasPrefix("*") ? "\"\($0)\"" : "\($0)" },
            hint: { text in
                text.contains(";") ? "without parameters" : text.contains("/") ? nil : "did you mean \(text)/*?"
            })
    }
}
