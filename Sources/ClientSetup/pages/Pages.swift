package import Message

/// The pages of the proxy port, which set up a machine that is to use the proxy. They are read-only; nothing else is answered there.
package final class Pages: Sendable {
    package enum Name: String, CaseIterable, Sendable {
        /// Larder's roots.
        case authority = "/ca.pem"
        /// The roots that this machine trusts, and Larder's. For programs whose setting replaces what they trust.
        case bundle = "/ca-bundle.pem"
        /// The same for Java.
        case trustStore = "/truststore.jks"
        case setupScript = "/setup.sh"
        case proxyConfiguration = "/proxy.pac"
        /// The same under the name that browsers look for by themselves, at `http://wpad.DOMAIN/` (Web Proxy Auto-Discovery).
        case autoDiscovery = "/wpad.dat"

        var contentType: String {
            switch self {
            case .authority: "application/x-x509-ca-cert"
            case .bundle: "application/x-pem-file"
            case .trustStore: "application/x-java-keystore"
            case .setupScript: "text/x-shellscript; charset=utf-8"
            case .proxyConfiguration, .autoDiscovery: "application/x-ns-proxy-autoconfig"
            }
        }
    }

    /// One page, as it is sent.
    package struct Page: Equatable, Sendable {
        package let contentType: String
        package let body: [UInt8]
        /// Changes with the body.
        package let eTag: EntityTag
        /// The body does not depend on the request.
        package let isFixed: Bool

        init(_ contentType: String, _ body: [UInt8], isFixed: Bool) {
            self.contentType = contentType
            self.body = body
            self.isFixed = isFixed
            eTag = Page.tag(of: body)
        }

        /// FNV-1a with 64 bits: two versions of a page differ in it, but for one chance in 2⁶⁴.
        private static func tag(of body: [UInt8]) -> EntityTag {
            let hash = body.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
            return EntityTag(isWeak: false, opaque: Array("\"\(String(hash, radix: 16))\"".utf8))
        }
    }

    /// The answer to a request for a path.
    package enum Answer: Equatable, Sendable {
        case page(Page)
        /// The page exists only with an authority (404).
        case noAuthority
        /// The page names the proxy, and the request does not say where it reached it (400).
        case noPlace
    }

    /// Larder's roots in DER. Empty without an authority.
    package let roots: [[UInt8]]
    private let authority: Page?
    private let bundle: Page?
    private let trustStore: Page?
    private let direct: DirectDestinations

    /// The pages of a proxy that intercepts nothing.
    ///
    /// - Parameter direct: what `/proxy.pac` sends around the proxy.
    package init(direct: DirectDestinations = DirectDestinations()) {
        (roots, authority, bundle, trustStore) = ([], nil, nil, nil)
        self.direct = direct
    }

    /// - Parameters:
    ///   - roots: Larder's roots in DER, the present one first.
    ///   - systemRoots: what the machine of the proxy trusts, in DER.
    ///   - now, sha1: see `JavaKeyStore.encode`.
    package init(
        roots: [[UInt8]], systemRoots: [[UInt8]], direct: DirectDestinations = DirectDestinations(), now: WallTime,
        sha1: ([UInt8]) -> [UInt8]
    ) {
        self.direct = direct
        precondition(!roots.isEmpty, "an authority has a root")
        self.roots = roots
        let others = systemRoots.filter { !roots.contains($0) }
        let entries =
            roots.enumerated().map { JavaKeyStore.Entry(alias: "larder-\($0 + 1)", certificate: $1) }
            + others.enumerated().map { JavaKeyStore.Entry(alias: "root-\($0 + 1)", certificate: $1) }
        authority = Page(Name.authority.contentType, PEMCertificates.write(roots), isFixed: true)
        bundle = Page(Name.bundle.contentType, PEMCertificates.write(roots + others), isFixed: true)
        trustStore = Page(
            Name.trustStore.contentType, JavaKeyStore.encode(entries, now: now, sha1: sha1), isFixed: true)
    }

    /// Whether there is an authority.
    package var hasAuthority: Bool { authority != nil }

    /// - Parameter place: where the client reached the proxy. Nil if its request has no usable Host field.
    package func answer(_ name: Name, place: ProxyPlace?) -> Answer {
        switch name {
        case .authority: return authority.map { .page($0) } ?? .noAuthority
        case .bundle: return bundle.map { .page($0) } ?? .noAuthority
        case .trustStore: return trustStore.map { .page($0) } ?? .noAuthority
        case .setupScript, .proxyConfiguration, .autoDiscovery: break
        }
        guard let place else { return .noPlace }
        let text =
            name == .setupScript
            ? setupScript(place, hasAuthority: hasAuthority) : proxyConfigurationScript(place, direct)
        return .page(Page(name.contentType, Array(text.utf8), isFixed: false))
    }
}
