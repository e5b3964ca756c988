package import Message

/// One cookie of a jar (RFC 6265 §5.3). Printing it does not show its value.
package struct Cookie: Sendable, Equatable {
    /// `SameSite`. Kept and not used: a proxy does not know from which page a request comes.
    package enum SameSite: String, CaseIterable, Sendable { case unset, none, lax, strict }

    /// Without "=". Empty if the cookie has none.
    package var name: [UInt8]
    package var value: [UInt8]
    /// In lower case, without a dot in front.
    package var domain: String
    /// Sent to the host `domain` alone, and not to names below it.
    package var isHostOnly: Bool
    package var path: [UInt8]
    package var isSecure: Bool
    package var isHTTPOnly: Bool
    package var sameSite: SameSite
    /// Nil: a session cookie, which ends when somebody says so.
    package var expiry: WallTime?
    /// The order in which cookies were made, used and changed (`CookieJar.clock`). A changed cookie keeps the first.
    var createdAt: UInt64 = 0
    var usedAt: UInt64 = 0
    var changedAt: UInt64 = 0

    package init(
        name: [UInt8], value: [UInt8], domain: String, isHostOnly: Bool, path: [UInt8] = [0x2F], isSecure: Bool = false,
        isHTTPOnly: Bool = false, sameSite: SameSite = .unset, expiry: WallTime? = nil
    ) {
        self.name = name
        self.value = value
        self.domain = domain
        self.isHostOnly = isHostOnly
        self.path = path
        self.isSecure = isSecure
        self.isHTTPOnly = isHTTPOnly
        self.sameSite = sameSite
        self.expiry = expiry
    }

    package func isExpired(at now: WallTime) -> Bool { expiry.map { $0 <= now } ?? false }

    /// A jar has one of each: the next one replaces it.
    func isSame(as other: Cookie) -> Bool {
        name == other.name && domain == other.domain && isHostOnly == other.isHostOnly && path == other.path
    }

    func isFor(_ origin: CookieOrigin) -> Bool {
        (isHostOnly ? domain == origin.host : origin.matches(domain: domain)) && (!isSecure || origin.isSecure)
            && origin.matches(path: path)
    }

    /// In the field: `name=value`.
    var pair: [UInt8] { name.isEmpty ? value : name + [UInt8(ascii: "=")] + value }
}

extension Cookie: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `session for portal.example/`.
    package var description: String {
        "\(String(decoding: name, as: UTF8.self)) for \(domain)\(String(decoding: path, as: UTF8.self))"
    }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// Bounds of cookies, in the numbers that browsers use.
package enum CookieLimits {
    /// Bytes of name and value together (draft-ietf-httpbis-rfc6265bis §5.6). Beyond: the cookie is rejected.
    package static let pairBytesMax = 4096
    /// Bytes of the value of an attribute. Beyond: the attribute is ignored.
    package static let attributeBytesMax = 1024
    /// Cookies of one domain. Beyond: one is evicted.
    package static let perDomainMax = 50
    /// Cookies of a jar. Beyond: one is evicted.
    package static let countMax = 3000
    /// Bytes of the field `Cookie`. Beyond: the cookies that are sent last are left out.
    package static let fieldBytesMax = 16 << 10
    /// How far ahead an origin may set the end of a cookie. Beyond: it ends then.
    package static let lifetimeMax = Seconds(400 * 86_400)
    /// Bytes of a cookie file. Beyond: it is not read. A full jar has room in it.
    package static let fileBytesMax = 64 << 20
    /// Bytes of a line in a cookie file. Beyond: the line is skipped. The default path of a cookie is as long as a target may be.
    package static let lineBytesMax = 16 << 10
}

/// Why a cookie does not come into the jar.
package enum CookieRejection: String, Error, CaseIterable, Sendable {
    /// It has neither a name nor a value.
    case empty
    /// It has a character that cannot be part of a cookie: a control character, or in a cookie file ";". A tab is one of them as well: the
    /// cookie file could not hold it.
    case character
    /// Name and value are longer than `CookieLimits.pairBytesMax`.
    case tooLong = "too-long"
    /// `Domain` is not the host, nor a domain above it.
    case domain
    /// `Domain` is a suffix below which anybody can have a name, such as `co.uk`.
    case publicSuffix = "public-suffix"
    /// It has `Secure`, or would hide one that has it, and comes over a connection that others can read or change.
    case insecure
    /// Its name promises what it does not have: `__Secure-`, `__Host-`.
    case prefix

    package var text: String {
        switch self {
        case .empty: "it has neither name nor value"
        case .character: "it has a character that cannot be part of a cookie"
        case .tooLong: "name and value have more than \(CookieLimits.pairBytesMax) bytes"
        case .domain: "its Domain is not that of the host"
        case .publicSuffix: "its Domain is a public suffix"
        case .insecure: "the connection is not secure"
        case .prefix: "it lacks what the prefix of its name promises"
        }
    }
}
