package import Message

/// The request fields by which the origin selected a response (RFC 9110 §12.5.5).
package enum Vary: Sendable, Equatable {
    /// There is no `Vary`: the response is for every request.
    case none
    case names([VaryName])
    /// There is a `*`, or a value that cannot be parsed or is too long: no later request matches (RFC 9111 §4.1).
    case star

    /// More names than this count as `*`, because each costs a search through every later request.
    package static let namesMax = 16

    package init(_ fields: Fields) {
        guard fields.contains(.vary) else {
            self = .none
            return
        }
        var names: [VaryName] = []
        var isReadable = true
        for value in fields.all(.vary) {
            forEachListElement(value) { element in
                let name = VaryName(element)
                // "*" is a tchar, but not a field name.
                isReadable = isReadable && !element.contains(Byte.asterisk) && element.allSatisfy(isTchar)
                if !name.isNeverForwarded, !names.contains(name) { names.append(name) }
            }
        }
        if !isReadable || names.count > Self.namesMax {
            self = .star
        } else {
            self = names.isEmpty ? .none : .names(names)
        }
    }
}

extension Vary {
    func nominates(_ name: FieldName) -> Bool {
        switch self {
        case .none, .star: false
        case .names(let names): names.contains { $0.name == name }
        }
    }

    /// The origin selects by the site of the page that asks. Its answers have permissions for that site alone (Fetch Standard, CORS protocol).
    package var nominatesOrigin: Bool { nominates(.origin) }
}

/// A field name in `Vary`.
package struct VaryName: Sendable, Equatable {
    package let name: FieldName
    /// In lower case.
    package let spelling: [UInt8]

    package init(_ spelling: some Collection<UInt8>) {
        name = FieldName(spelling: spelling)
        self.spelling = spelling.map(asciiLowercased)
    }

    /// The field is for one connection (RFC 9110 §7.6.1) or for a proxy. No origin gets it from here, so it selects nothing.
    var isNeverForwarded: Bool {
        name == .other ? spelling.starts(with: "proxy-".utf8) : VaryName.neverForwarded.contains(name)
    }

    private static let neverForwarded: FieldNameSet = [
        .connection, .keepAlive, .proxyConnection, .te, .transferEncoding, .upgrade, .http2Settings, .larderPolicy,
        .proxyAuthenticate, .proxyAuthenticationInfo, .proxyAuthorization,
    ]

    func names(_ line: FieldLine, _ bytes: borrowing Span<UInt8>) -> Bool {
        guard line.name == name else { return false }
        guard name == .other else { return true }
        guard line.nameRange.count == spelling.count else { return false }
        for offset in spelling.indices
        where asciiLowercased(bytes[line.nameRange.lowerBound + offset]) != spelling[offset] { return false }
        return true
    }
}
