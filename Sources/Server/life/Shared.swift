package import Accounts
package import LimitTables
package import LogIns
package import Routing
package import Origins
import Access
import Authentication
import Caching
import ClientSetup
package import EventLoop
import Forwarding
package import Interception
package import Message
package import Storage
import Synchronization
import TLS

/// What all workers share: the zones, the blocking pool, the log, and the secrets of this process.
package final class Shared: Sendable {
    /// The tier of the default zone. The other zones are in `Worker.zones`.
    package var tier: Tiers { zones.defaultTier }
    package let zones: Zones
    let pool: BlockingPool
    let accessLog: AccessLogSink
    let filteredIndexes = FilteredIndexes()
    /// What indexes promise of their files.
    let indexDigests: IndexDigests
    let hasher: Hasher
    let invalidationMarks = InvalidationMarks()
    /// Of credentials that connections have proven. Its key is of this process alone.
    let credentialsHash: SipHash
    /// How clients and the log read the IDs of requests. Its key is of this process alone.
    let requestIDs: RequestIDText
    // Counted over all workers; `limits` bounds each.
    let clients = Occupancy()
    let exchanges = Occupancy()
    let tunnels = Occupancy()
    let keptBodies = Occupancy()
    /// The clients that did not accept the certificate for a host.
    let leafRefusals = Locked(LeafRefusals())
    /// The origins that asked for a certificate of the client.
    let certificateRequests = Locked(CertificateRequests())
    /// What the log has said of failed handshakes and log-ins at origins and next proxies.
    let connectionNews = Locked(ExpiringTable<String, Void>(lifetime: .seconds(60), countMax: 256))
    /// Those without verification that the log has named. Rules name each of their hosts.
    let unverifiedOrigins = Locked<Set<Endpoint>>([])
    /// The keys of responses that did not have their digests, for a minute: the next request goes past the caches on the way.
    let mismatches = Locked(ExpiringTable<StorageKey, Void>(lifetime: .seconds(60), countMax: 1024))
    /// The keys of responses that were asked for as a whole, for a minute, because a client had asked for a part.
    let askedWhole = Locked(ExpiringTable<StorageKey, Void>(lifetime: .seconds(60), countMax: 1024))
    /// Which next proxies have failed lately.
    package let nextProxies = SharedHealth<NextProxy, NextProxyFailure>()
    /// Which origins have not accepted connections lately.
    package let originHealth = SharedHealth<Endpoint, ConnectFailure>()
    /// Which names the name servers have been silent about lately.
    package let nameServers = NameServerWatch()
    /// Which origins have asked not to be asked for a while.
    let originPauses = Locked(OriginPauses())
    /// The origins that have answered 417 to an `Expect: 100-continue` of Larder's own.
    let withoutExpectations = Locked(ExpiringTable<Origin, Void>(lifetime: .seconds(3600), countMax: 1024))
    /// How the limits of `bandwidth` are used.
    package let bandwidth = Locked(BandwidthLedger())
    /// How the limits of `limits.rules` are used.
    package let limits: LimitTable
    let budgets: BudgetShelf
    let overload = OverloadWatch()
    /// What the log has said of connections over a limit.
    let limitNews = Locked(ExpiringTable<String, Void>(lifetime: .seconds(60), countMax: 256))
    /// Which origins refuse the credentials of Larder.
    package let credentialLedger = Locked(CredentialLedger())
    /// The tickets with which Larder logs in.
    let tickets = TicketShelf()
    /// The keys with which clients are logged in by Negotiate.
    let acceptor = AcceptorShelf()
    /// Where users are looked up who are in no file.
    let directory = DirectoryDesk()
    /// What clients hold in place of secrets.
    package let placeholders = PlaceholderShelf()
    /// What jobs have requested, for `larder learn`.
    package let learning = LearningBook()
    /// The jars of `cookie_jars`.
    package let cookies = CookieShelf()
    /// Which clients have proven their access to signed addresses.
    let provenAccess: SharedProofs
    /// What the cache did for each package ecosystem.
    package let ecosystems = EcosystemTally([:])
    /// What reached the origin of `larder doctor`.
    let checkRecords = Locked(CheckRecords())
    /// Tells this process from other Larders in `Via`.
    let instance: Instance
    /// What other nodes have. Nil: this Larder is alone.
    package let fleet: FleetDesk?
    /// What this node shows to others. Nil: the nodes of the fleet do not ask each other.
    package var peerTerms: PeerTerms? { fleet?.peers?.terms }
    /// How often clients failed to prove who they are, and which nonces they have used.
    let attempts: AttemptLedger
    private let whenWaitBegins = Locked<[@Sendable () -> Void]>([])
    /// The key of the digests under which verified credentials are remembered.
    let digestKey: [UInt8]

    /// The hash of cache keys, keyed with a secret of this process so that nobody can provoke collisions.
    struct Hasher: Sendable {
        private let hasher: CacheKeyHasher

        init() {
            let secret = Shared.random(16)
            hasher = CacheKeyHasher(secret: (Shared.word(secret[0..<8]), Shared.word(secret[8..<16])))
        }

        func key(of uri: borrowing Span<UInt8>) -> StorageKey {
            let key = unsafe hasher.key(of: uri.bytes)
            return StorageKey(high: key.high, low: key.low)
        }
    }

    init(
        zones: Zones, hasher: Hasher, pool: BlockingPool, accessLog: AccessLogSink, fleet: FleetDesk? = nil
    ) {
        self.fleet = fleet
        limits = LimitTable(news: fleet?.limitNews)
        attempts = AttemptLedger(failureKey: fleet?.key(for: .failures))
        budgets = BudgetShelf(limits)
        self.zones = zones
        self.pool = pool
        self.accessLog = accessLog
        self.hasher = hasher
        credentialsHash = SipHash(bytes: Shared.random(16))
        requestIDs = RequestIDText(SipHash(bytes: Shared.random(16)))
        let digestKey = Shared.random(32)
        self.digestKey = digestKey
        indexDigests = IndexDigests { hasher.key(of: $0.span) }
        provenAccess = SharedProofs { Digest.hmacSHA256(key: digestKey, $0) }
        instance = Instance(Shared.random(6).flatMap { [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)] })
    }

    /// Has every worker decide anew about the next request of each connection. Each worker registers what does that.
    func closeShortWays() { for close in whenWaitBegins.withLock({ $0 }) { close() } }
    func onWait(_ close: @escaping @Sendable () -> Void) { whenWaitBegins.withLock { $0.append(close) } }

    static func random(_ count: Int) -> [UInt8] { randomBytes(count) }

    private static func word(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.reduce(0) { $0 << 8 | UInt64($1) } }

    /// The clients that did not accept the certificate for a host, the latest first.
    package func refusedLeaves(now: Moment) -> [(key: LeafRefusals.Key, entry: LeafRefusals.Entry)] {
        leafRefusals.withLock { $0.list(now: now) }
    }

    /// The origins that asked for a certificate of the client, the latest first.
    package func askingOrigins(now: Moment) -> [(host: String, entry: CertificateRequests.Entry)] {
        certificateRequests.withLock { $0.list(now: now) }
    }

    private let ownListeners = Locked<(admin: [SocketAddress], proxy: [SocketAddress])>(([], []))

    /// Sets the addresses of the admin server. No client reaches them through the proxy, whatever the rules allow.
    package func setAdminAddresses(_ addresses: [SocketAddress]) { ownListeners.withLock { $0.admin = addresses } }

    /// Sets the addresses on which the proxy accepts clients. Nor does any client reach them: it would be another client there.
    func setProxyAddresses(_ addresses: [SocketAddress]) { ownListeners.withLock { $0.proxy = addresses } }

    func isAdmin(_ address: IPAddress, port: UInt16) -> Bool {
        ownListeners.withLock { $0.admin.filter { $0.port == port } }.contains { listener in
            // A server that listens on every address may have one behind a translator, which is not to be found out.
            Shared.leads(address, to: listener)
                || (IPAddress(listener).map(addressClass) == .unspecified
                    && !addressClass(address).isPublic)
        }
    }

    func isOwnListener(_ address: IPAddress, port: UInt16) -> Bool {
        ownListeners.withLock { $0.proxy.filter { $0.port == port } }.contains { Shared.leads(address, to: $0) }
    }

    /// Whether a connection to the address reaches a server that listens there. The port is the same.
    ///
    /// Connecting to 0.0.0.0 or :: connects to this machine, and a server that listens there has every address of this machine.
    private static func leads(_ address: IPAddress, to listener: SocketAddress) -> Bool {
        guard let own = IPAddress(listener) else { return false }
        let reached = addressClass(address)
        if own == address || reached == .unspecified { return true }
        guard addressClass(own) == .unspecified else { return false }
        return reached == .loopback || Sockets.isOfThisMachine(SocketAddress(address, port: listener.port))
    }

    /// The boundary between the parts of an answer to several ranges. It is random, so content cannot contain it on purpose.
    static func boundary() -> [UInt8] {
        random(16).flatMap { [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)] }
    }

    /// The end of the key of responses that are stored for one credential: a keyed digest, which tells nobody the credential. A URI has no
    /// fragment, so no other key ends like this.
    func credentialTag(_ credential: [UInt8]) -> [UInt8] {
        let digest = Digest.hmacSHA256(key: digestKey, credential).prefix(16)
        return Array("#credential-".utf8)
            + digest.flatMap { [HeadWriter.hexDigit($0 >> 4), HeadWriter.hexDigit($0 & 15)] }
    }

    package func key(of uri: [UInt8]) -> StorageKey { hasher.key(of: uri.span) }

    /// What is stored for each credential, cookie jar and route under a key that they have in common is not served any more before it is validated, and
    /// leaves the disks soon: marks do not outlive the process.
    package func invalidateSeparate(under key: [UInt8], _ snapshot: Snapshot, _ zones: [Zone]) {
        invalidationMarks.mark(self.key(of: key))
        guard snapshot.storesSeparately else { return }
        for zone in zones {
            zone.tier.removeFromBackStore(keysBeginningWith: key + "#".utf8) { [hasher] in hasher.key(of: $0.span) }
        }
    }
}
