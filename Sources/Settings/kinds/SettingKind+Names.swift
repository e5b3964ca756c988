import Message
import Rules
import Texts

/// What the configuration says about a name in DNS, or about the names below it.
package struct DNSEntry<Value: Sendable & Equatable>: Sendable, Equatable {
    /// In lower case, without a dot at its end.
    package let name: String
    /// At least one.
    package let values: [Value]

    package init(name: String, values: [Value]) {
        precondition(!values.isEmpty, "an entry has a value")
        self.name = name
        self.values = values
    }
}

extension SettingKind where Value == [DNSEntry<IPAddress>] {
    /// `{ name: address, "*.name": [ address, … ] }`
    static var addressesOfNames: SettingKind {
        .namesMapped(
            to: SettingKind<IPAddress>.plainAddress, noun: "addresses", isWildcardAllowed: true,
            render: { $0.isV4 ? "\($0)" : "\"\($0)\"" })
    }
}

extension SettingKind where Value == [DNSEntry<ListenAddress>] {
    /// `{ suffix: server, suffix: [ server, … ] }`
    static var serversOfSuffixes: SettingKind {
        .namesMapped(
            to: SettingKind<ListenAddress>.tcpAddress, noun: "name servers", isWildcardAllowed: false,
            render: { yamlQuoted("\($0)") })
    }
}

extension SettingKind where Value == String {
    /// The name of something that stands in cache keys, logs and statistics.
    static var plainName: SettingKind {
        scalar(
            "a name of 1 to 64 letters, digits, \"-\", \"_\" and \".\"",
            parse: { text in
                let isName = text.utf8.allSatisfy {
                    ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7A) || (0x30...0x39).contains($0) || $0 == 0x2D || $0 == 0x5F
                        || $0 == 0x2E
                }
                return isName && (1...64).contains(text.utf8.count) ? text : nil
            }, render: { $0 })
    }
}

extension SettingKind where Value == IPAddress {
    static var plainAddress: SettingKind {
        .scalar("an IP address", parse: { IPAddress(strict: $0.utf8) }, render: { "\($0)" })
    }
}

extension SettingKind {
    fileprivate static func namesMapped<Element>(
        to kind: SettingKind<Element>, noun: String, isWildcardAllowed: Bool,
        render: @escaping @Sendable (Element) -> String
    ) -> SettingKind where Value == [DNSEntry<Element>] {
        let values = kind.list()
        return SettingKind(
            allowed: "names with their \(noun): \(kind.allowed)",
            read: { node, problems in
                guard case .mapping(let entries) = node.value else {
                    problems.append(
                        SettingProblem(node, message: "found \(node.found), expected names with their \(noun)"))
                    return nil
                }
                var result: [DNSEntry<Element>] = []
                for entry in entries {
                    var own: [SettingProblem] = []
                    let value = values.read(entry.value, &own)
                    problems += own.map { $0.inside(".\(entry.key)") }
                    guard let name = dnsName(entry.key, isWildcardAllowed: isWildcardAllowed) else {
                        problems.append(
                            SettingProblem(
                                line: entry.keyLine, place: ".\(entry.key)",
                                message: "expected a host name" + (isWildcardAllowed ? " or *.name" : ""),
                                hint: isWildcardAllowed ? nil : "a suffix includes the names below it"))
                        continue
                    }
                    if result.contains(where: { $0.name == name }) {
                        problems.append(
                            SettingProblem(line: entry.keyLine, place: ".\(entry.key)", message: "is listed twice"))
                    } else if let value {
                        result.append(DNSEntry(name: name, values: value))
                    }
                }
                return result.count == entries.count ? result : nil
            },
            render: { entries in
                guard !entries.isEmpty else { return "" }
                let texts = entries.map { entry in
                    "\"\(entry.name)\": [ \(entry.values.map(render).joined(separator: ", ")) ]"
                }
                return "{ \(texts.joined(separator: ", ")) }"
            })
    }
}

/// The name in lower case without a dot at its end. Returns nil if it is no host name, or an address: no name server is asked for those.
extension SettingKind where Value == DirectDestination {
    static var directDestination: SettingKind {
        .scalar(
            "a host name, *.name, an address or a network of IPv4",
            parse: { text in
                if text.contains("/") {
                    return AddressRange(text).flatMap { $0.first.isV4 ? .network($0) : nil }
                }
                return HostPattern(text).flatMap { $0 == .any ? nil : .host($0) }
            },
            render: {
                switch $0 {
                case .host(let host):
                    host.description.hasPrefix("*") || host.description.contains(":") ? "\"\(host)\"" : "\(host)"
                case .network(let range): "\(range)"
                }
            },
            hint: { text in
                if text == "*" { return "then nothing would use the proxy" }
                if text.contains("://") { return "only the host, without a scheme" }
                if text.hasPrefix(".") { return "did you mean *\(text)?" }
                return text.contains(":") && text.contains("/")
                    ? "PAC files cannot compare networks of IPv6; name addresses" : nil
            })
    }
}

private func dnsName(_ text: String, isWildcardAllowed: Bool) -> String? {
    var name = text.lowercased()
    if name.hasSuffix(".") { name.removeLast() }
    let rest = isWildcardAllowed && name.hasPrefix("*.") ? name.dropFirst(2) : name[...]
    let labels = rest.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    let isName =
        rest.utf8.count <= 253 && !hostEndsInNumber(rest.utf8)
        && labels.allSatisfy { label in
            (1...63).contains(label.count)
                && label.allSatisfy { byte in
                    switch byte {
                    case 0x61...0x7A, 0x30...0x39, UInt8(ascii: "-"), UInt8(ascii: "_"): true
                    default: false
                    }
                }
        }
    return isName ? name : nil
}
