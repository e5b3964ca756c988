import Authentication
package import Caching
package import Message

/// Which clients have shown the origin which signed addresses, and were let in.
///
/// A response that was fetched with a signature is stored under a key without it (`SignedAddress`), and is served to nobody who has not proven
/// access: with the very address that the client presents, within the last 15 minutes and before the signature expires. There are two
/// proofs. The origin answered a request of this client for the address with content, or with a 304. Or an origin that is trusted with it
/// redirected this client there. Whoever has no proof yet is sent to the origin, with the validators of what is stored.
///
/// Addresses and names are kept as digests under a secret key. The clocks are parameters.
package struct ProvenAccess: Sendable {
    /// Whose access is proven: the user if there is one, else the address of the client.
    package enum Client: Sendable, Hashable {
        case user(String)
        case address(IPAddress)
        /// A client of a Unix socket.
        case local
    }

    /// What is known about an address that a client presents.
    package struct Finding: Sendable, Equatable {
        /// The client may have what is stored.
        package var isProven: Bool
        /// What the address stands for. Nil if it is known by its own key only.
        package var standsFor: RedirectSource?

        package init(isProven: Bool, standsFor: RedirectSource? = nil) {
            self.isProven = isProven
            self.standsFor = standsFor
        }
    }

    private struct Entry: Sendable {
        var finding: Finding
        /// When the signature expires. Nil if that is not known.
        var expiry: WallTime?
    }

    package static let lifetimeMax = Duration.seconds(15 * 60)
    private let digest: @Sendable ([UInt8]) -> [UInt8]
    private var entries: ExpiringTable<[UInt8], Entry>

    /// - Parameters:
    ///   - countMax: the oldest entries are forgotten when there are more.
    ///   - digest: a keyed digest whose key no other program knows.
    package init(countMax: Int = 65_536, digest: @escaping @Sendable ([UInt8]) -> [UInt8]) {
        self.digest = digest
        entries = ExpiringTable(lifetime: ProvenAccess.lifetimeMax, countMax: countMax)
    }

    /// What is known about the address, for this client. Nil if nothing is.
    package func finding(_ client: Client, _ uri: [UInt8], now: Duration, wallTime: WallTime) -> Finding? {
        guard let entry = entries.value(name(client, uri), now: now)?.value else { return nil }
        if let expiry = entry.expiry, expiry <= wallTime { return nil }
        return entry.finding
    }

    /// Notes a finding, and starts its lifetime. A proof does not take away what is known about what the address stands for.
    ///
    /// - Parameter expiry: when the signature expires.
    package mutating func note(
        _ client: Client, _ uri: [UInt8], _ finding: Finding, expiry: WallTime?, now: Duration, wallTime: WallTime
    ) {
        if let expiry, expiry <= wallTime { return }
        var finding = finding
        if finding.standsFor == nil {
            finding.standsFor = self.finding(client, uri, now: now, wallTime: wallTime)?.standsFor
        }
        entries.set(name(client, uri), Entry(finding: finding, expiry: expiry), now: now)
    }

    /// The kind and the length come first, so that no two pairs of client and address have the same bytes.
    private func name(_ client: Client, _ uri: [UInt8]) -> [UInt8] {
        let (kind, text): (UInt8, [UInt8]) =
            switch client {
            case .user(let name): (1, Array(name.utf8))
            case .address(let address): (2, Array("\(address)".utf8))
            case .local: (3, [])
            }
        let length = (0..<4).map { UInt8(truncatingIfNeeded: text.count >> ($0 * 8)) }
        return digest([kind] + length + text + uri)
    }
}

/// An address that never stands for something else, and redirects to others that change.
package struct RedirectSource: Sendable, Equatable {
    /// The key of the address that redirects.
    package let source: [UInt8]
    /// The key of what it redirects to. A URI has no fragment, so nothing else has this key.
    package let key: [UInt8]
    /// The digest that its rule demands.
    package let digest: ExpectedDigest?

    /// An address whose body is known by its digest: it does not matter where it redirects to.
    package init(_ source: [UInt8], digest: ExpectedDigest) {
        self.source = source
        self.digest = digest
        key = source + Array("#redirected".utf8)
    }

    /// An address that never changes, and where it redirects to.
    package init(_ source: [UInt8], to target: SignedAddress) {
        self.source = source
        digest = nil
        key = source + Array("#redirected-to-".utf8) + target.key
    }
}
