import EventLoop
import Foundation
import Glibc

/// Random numbers from a seed: the same in every run.
struct Dice: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// The numbers follow from the parts together.
    init(_ parts: UInt64...) { state = digest(parts) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }

    mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
    /// True once in `count`.
    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }
    mutating func pick<Element>(_ values: [Element]) -> Element { values[below(values.count)] }
}

func digest(_ parts: [UInt64]) -> UInt64 {
    parts.reduce(0x5EED) { mixed(($0 &* 0x100_0000_01B3) ^ ($1 &+ 0x9E37_79B9_7F4A_7C15)) }
}

private func mixed(_ value: UInt64) -> UInt64 {
    var bits = value
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
}

/// A long stretch of random bytes. Each form of each resource is a piece of it from a place of its own, so that a byte of
/// another form, or from another offset of the same, is wrong with a probability of 255 in 256.
enum Noise {
    /// A prime: no distance between blocks, pages or chunks is a multiple of it.
    static let period = 1_048_573
    /// Of any body.
    static let lengthMax = 4 << 20

    static let bytes: [UInt8] = {
        var dice = Dice(0x1A2B)
        let words = (0...(period / 8)).map { _ in dice.next() }
        let once = unsafe words.withUnsafeBytes { unsafe Array($0.prefix(period)) }
        var all: [UInt8] = []
        all.reserveCapacity(period + lengthMax)
        while all.count < period + lengthMax { all += once.prefix(period + lengthMax - all.count) }
        return all
    }()
}

enum Language: String, CaseIterable, Sendable { case en, de }

/// One resource of one of the two origins. What it is like follows from its number and the seed of the soak.
struct Resource: Hashable, Sendable {
    let seed: UInt64
    let number: Int

    static let originCount = 2

    /// Both origins have the same paths with different content.
    var origin: Int { number % Self.originCount }
    var path: String {
        let path = "/\(folder.rawValue)/\(number / Self.originCount)"
        return promise == .path || promise == .shared ? "\(path)/\(promisedDigest)" : path
    }

    /// What the proxy is configured to do with it.
    enum Folder: String, Sendable { case a, b, fly, once, whole, pass, first, proven, shared, files }
    var folder: Folder { Self.folders[number / Self.originCount % Self.folders.count] }
    static let folders: [Folder] = plainFolders + plainFolders + [.proven, .shared, .files]
    private static let plainFolders: [Folder] = [.a, .b, .fly, .once, .whole, .pass, .first]

    init(seed: UInt64, number: Int) {
        self.seed = seed
        self.number = number
    }

    /// The proxy follows redirects of it.
    var isFollowed: Bool { Self.followed.contains(folder) }
    static let followed: [Folder] = [.a, .once, .whole]
    /// How many redirects lead to it at most, at either origin.
    static let detoursMax = 3
    /// Where the redirect with that number leads. The other origin has another resource with the same path.
    func detour(_ number: Int) -> String { "\(path)?\(self.number)-\(number)" }

    private func trait(_ salt: UInt64) -> UInt64 { digest([seed, UInt64(number), salt]) }

    /// How the origin treats requests for it.
    enum Health: Sendable {
        /// Every answer is right, and the content never changes: an answer that fails is the proxy's fault.
        case constant
        /// Every answer is right; the content changes.
        case well
        /// Now and then an answer is faulty.
        case flaky
        /// Most answers are faulty, often in several ways.
        case bad
    }
    var health: Health {
        switch trait(1) % 10 {
        case 0, 1: .constant
        case 2: .well
        case 3...6: .flaky
        default: .bad
        }
    }

    /// What the origin gives to tell one version from another.
    enum Validator: Sendable { case tag, date, both, weakTag, none }
    var validator: Validator {
        switch trait(2) % 10 {
        case 0...3: .tag
        case 4, 5: .both
        case 6, 7: .date
        case 8: .weakTag
        default: .none
        }
    }

    enum Coding: Sendable {
        case plain
        /// By `Accept-Encoding`, and `Vary` says so.
        case negotiated
        /// Whoever asks gets gzip.
        case gzip
    }
    var coding: Coding {
        guard !isPersonal, !isLarge, !isPromised else { return .plain }
        return switch trait(3) % 8 {
        case 0, 1: .negotiated
        case 2: .gzip
        default: .plain
        }
    }

    /// There is one in each language.
    var isVaried: Bool { !isPromised && trait(4) % 6 == 0 }
    /// Made for one client each time: the content follows from a field of the request, and nobody else may ever get it.
    var isPersonal: Bool { !isPromised && trait(5) % 10 == 0 }
    /// Whose page it is says a cookie, of which there are a few, so that each comes again. Otherwise a number says it that is another one each time.
    var isByCookie: Bool { isPersonal && trait(11) % 3 != 0 }
    static let cookieCount = 4
    /// A large one has a file of its own on the disk.
    var isLarge: Bool { digest([seed, contentNumber, 6]) % (isPromised ? 4 : 16) == 0 }

    /// What the origin says about storing it.
    var cacheControl: String? {
        if isPersonal {
            // A page by cookie may be stored where nobody gets it unasked. The policies of two folders give away what is stale.
            // A date does not tell the page of one cookie from that of another.
            let isAsked = isByCookie && folder != .first && folder != .b && (validator == .tag || validator == .weakTag)
            var choice: [String?] = ["no-store", "private, max-age=60"]
            if isByCookie { choice += ["private", "no-cache, private"] }
            if isAsked { choice += ["no-cache", "max-age=0", "public, no-cache"] }
            // Without Last-Modified no lifetime can be guessed.
            if isAsked { choice += [nil, nil] }
            if isAsked, variesByCookie { choice = ["public, max-age=60", "max-age=1", "no-cache", nil] }
            return choice[Int(trait(7) % UInt64(choice.count))]
        }
        return switch trait(8) % 8 {
        case 0: "no-cache"
        case 1: "max-age=0"
        case 2: "max-age=1, must-revalidate"
        case 3: "max-age=1, stale-while-revalidate=5"
        case 4: "s-maxage=30"
        case 5: validator == .none ? "max-age=60" : nil
        default: "public, max-age=60"
        }
    }

    /// `Vary` says that the cookie selects the page.
    var variesByCookie: Bool { isByCookie && trait(12) % 2 == 0 }

    var mediaType: String { ["text/plain", "text/css", "application/octet-stream"][Int(trait(9) % 3)] }

    func length(_ version: Int, _ language: Language) -> Int {
        var dice = Dice(seed, contentNumber, 10, UInt64(version), language == .en ? 0 : 1)
        // Where something changes in the store: nothing, a block of checksums, what is packed with others.
        func around(_ middle: Int) -> Int { middle + dice.below(5) - 2 }
        if isLarge { return dice.oneIn(4) ? around(2 << 20) : (1 << 20) + 1 + dice.below(2 << 20) }
        switch dice.below(24) {
        // Nothing, and what is nearly so, would be the same for several that share by their digest.
        case 0...2 where promise == .shared: return 16 + dice.below(15)
        case 0: return 0
        case 1, 2: return 1 + dice.below(15)
        case 3: return around(4096)
        case 4: return around(64 << 10)
        case 5: return around(128 << 10)
        case 6: return 65_536 + dice.below(200_000)
        case 7...11: return 4096 + dice.below(40_000)
        default: return 100 + dice.below(4000)
        }
    }
}

/// A complete body that an origin may send for a resource: what a checker compares with.
struct Form: Hashable, Sendable, CustomStringConvertible {
    let resource: Resource
    var version = 1
    var language = Language.en
    var kind = Kind.plain

    enum Kind: Hashable, Sendable {
        case plain
        case gzip
        /// It says gzip and is something else.
        case falseGzip
        /// For the request that carried this number.
        case personal(UInt64)
        /// The page of a status that is no success, or of a redirect.
        case page(Int)
        /// The answer to a POST that carried this number.
        case posted(UInt64)
    }

    var description: String { "version \(version) \(language) \(kind)" }

    private var kindParts: [UInt64] {
        switch kind {
        case .plain: [0]
        case .gzip: [1]
        case .falseGzip: [2]
        case .personal(let nonce): [3, nonce]
        case .page(let status): [4, UInt64(status)]
        case .posted(let nonce): [5, nonce]
        }
    }

    private var place: Int {
        let parts = [resource.seed, resource.contentNumber, UInt64(version), language == .en ? 0 : 1] + kindParts
        return Int(digest(parts) % UInt64(Noise.period))
    }

    private var noiseLength: Int {
        switch kind {
        case .plain, .personal: resource.length(version, language)
        // Nothing at all would be taken for the gzip form of nothing.
        case .falseGzip: max(1, resource.length(version, language))
        case .page(let status): 40 + status % 50
        case .posted(let nonce): Int(nonce % 3000)
        case .gzip: 0
        }
    }

    /// What comes out where the coding is undone.
    private var decoded: Form {
        var form = self
        form.kind = .plain
        return form
    }

    /// All bytes of it.
    var bytes: ArraySlice<UInt8> {
        if kind == .gzip { return GzipForms.bytes(self)[...] }
        return Noise.bytes[place..<place + noiseLength]
    }

    fileprivate func compressed() -> [UInt8] { gzipped(decoded.bytes) }

    var length: Int { bytes.count }

    /// The tag of this form, which no other has.
    var opaqueTag: String {
        let kind =
            switch kind {
            case .plain: "p"
            case .gzip: "g"
            case .falseGzip: "f"
            case .personal(let nonce): "u\(nonce)"
            case .page(let status): "s\(status)"
            case .posted(let nonce): "o\(nonce)"
            }
        return "\(resource.number)-\(version)-\(language)-\(kind)"
    }

    /// The offset of the first byte of `received` that is not the one that stands at `start` and behind it in this form.
    /// Bytes behind the end of the form differ. Returns nil if all are right.
    func firstDifference(_ received: ArraySlice<UInt8>, at start: Int) -> Int? {
        let own = bytes
        guard start <= own.count else { return received.isEmpty ? nil : 0 }
        let rest = own[(own.startIndex + start)...]
        let count = min(rest.count, received.count)
        if count == 0 { return received.isEmpty ? nil : 0 }
        let difference: Int? = unsafe received.withUnsafeBytes { left in
            unsafe rest.withUnsafeBytes { right in
                // A wrong byte can be at the end of megabytes: whole blocks are compared as long as they are the same.
                var at = 0
                while at < count {
                    let block = min(4096, count - at)
                    if unsafe memcmp(left.baseAddress! + at, right.baseAddress! + at, block) != 0 {
                        return (at..<at + block).first { unsafe left[$0] != right[$0] }
                    }
                    at += block
                }
                return nil
            }
        }
        return difference ?? (received.count > rest.count ? rest.count : nil)
    }
}

/// Compressed bodies, which take long to make, kept for a while.
private enum GzipForms {
    private static let known = Locked<[Form: [UInt8]]>([:])

    static func bytes(_ form: Form) -> [UInt8] {
        if let bytes = known.withLock({ $0[form] }) { return bytes }
        let made = form.compressed()
        known.withLock {
            if $0.count > 2000 { $0 = [:] }
            $0[form] = made
        }
        return made
    }
}

private let dates = Locked(
    {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return (format, [Int: String]())
    }())

/// IMF-fixdate (RFC 9110 §5.6.7).
func httpDate(_ secondsSinceEpoch: Int) -> String {
    dates.withLock { state in
        if let text = state.1[secondsSinceEpoch] { return text }
        let text = state.0.string(from: Date(timeIntervalSince1970: Double(secondsSinceEpoch)))
        if state.1.count > 10_000 { state.1 = [:] }
        state.1[secondsSinceEpoch] = text
        return text
    }
}

extension Form {
    /// Each version in each language was modified at a second of its own, long ago. What is no gzip must not pass for the
    /// same as what is.
    var lastModified: Int {
        1_700_000_000 + version + (language == .en ? 0 : 500_000) + (kind == .falseGzip ? 1_000_000 : 0)
    }
}
