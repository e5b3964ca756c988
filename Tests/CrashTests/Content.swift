import EventLoop
import Foundation
import Glibc

/// Random numbers from a seed: the same in every run.
struct Dice: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x2545_F491_4F6C_DD1D }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        return mixed(state)
    }

    mutating func below(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    /// True once in `count`.
    mutating func oneIn(_ count: Int) -> Bool { below(count) == 0 }
}

private func mixed(_ value: UInt64) -> UInt64 {
    var bits = value
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    return bits ^ (bits >> 31)
}

/// What a body is made of: a long stretch of random bytes, of which each representation takes a piece from a place of its own,
/// so that a byte from another one, or from another offset of the same, is wrong with a probability of 255 in 256, and a
/// few of them tell where they came from. Checked by one comparison of memory, which is quick without optimisation too.
enum Noise {
    /// A prime: no distance between blocks, pages or records is a multiple of it.
    static let period = 1_048_573
    /// Of any body.
    static let lengthMax = 8 << 20

    static let bytes: [UInt8] = {
        var dice = Dice(seed: 0x1A2B)
        var words: [UInt64] = []
        for _ in 0...(period / 8) { words.append(dice.next()) }
        let once = unsafe words.withUnsafeBytes { unsafe Array($0.prefix(period)) }
        var all: [UInt8] = []
        all.reserveCapacity(period + lengthMax)
        while all.count < period + lengthMax { all += once.prefix(period + lengthMax - all.count) }
        return all
    }()

    /// The offset of the first byte of `received` that is not the one it should be; nil where all are right.
    /// - Parameter start: where the first of them stands in the noise.
    static func firstDifference(_ received: ArraySlice<UInt8>, from start: Int) -> Int? {
        let first = start % period
        let isSame = unsafe received.withUnsafeBytes { left in
            unsafe bytes.withUnsafeBytes { right in
                guard let start = left.baseAddress else { return true }
                return unsafe memcmp(start, right.baseAddress! + first, left.count) == 0
            }
        }
        if isSame { return nil }
        return zip(received, bytes[first...]).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    }

    /// Where in the noise these bytes stand; nil: nowhere, they are something else.
    static func position(of sample: ArraySlice<UInt8>) -> Int? {
        guard sample.count >= 8 else { return nil }
        return firstPlace(of: sample, in: bytes).map { $0 % period }
    }
}

/// One resource of the origin. All about it follows from its number, all about one of its representations from number,
/// version and language.
struct Resource: Hashable, Sendable {
    let number: Int

    var path: String { "/\(folder)/\(number)" }
    private var folder: String { ["a", "a/b", "pool"][number % 3] }

    init(number: Int) { self.number = number }

    /// nil: not one of ours.
    init?(path: some StringProtocol) {
        guard let last = path.split(separator: "/").last, let number = Int(last) else { return nil }
        self.init(number: number)
        guard path == self.path else { return nil }
    }

    private func trait(_ salt: UInt64) -> UInt64 { mixed(UInt64(number) &* 0x1000 &+ salt) }

    var isChunked: Bool { trait(1) % 4 == 0 }
    /// There is one in each language.
    var isVaried: Bool { trait(2) % 8 == 0 }
    /// Not fresh for any time: each use is validated, and renewed by a 304.
    var isAlwaysValidated: Bool { trait(3) % 10 == 0 }
    /// What the origin gives to recognize a version by.
    enum Validator: Sendable { case tag, date, both, none }
    var validator: Validator {
        switch trait(4) % 8 {
        case 0: .none
        case 1: .date
        case 2...4: .both
        default: .tag
        }
    }
    var tag: String { "group-\(number % Self.tagCount)" }
    static let tagCount = 40
    var mediaType: String { ["text/plain", "application/octet-stream", "image/png"][Int(trait(5) % 3)] }
    /// Of more than a store packs together with others; about one in twelve.
    var isLarge: Bool { trait(6) % 12 == 0 }

    func length(_ version: Int, _ language: Language) -> Int {
        var dice = Dice(seed: trait(7) &+ UInt64(version) &* 31 &+ UInt64(language.rawValue))
        // Where something changes: nothing, one block of checksums, what is packed.
        func around(_ middle: Int) -> Int { middle + dice.below(5) - 2 }
        if isLarge { return dice.oneIn(4) ? around(2 << 20) : (1 << 20) + 1 + dice.below(4 << 20) }
        switch dice.below(20) {
        case 0: return 0
        case 1: return 1 + dice.below(15)
        case 2: return around(4096)
        case 3: return around(64 << 10)
        case 4: return around(128 << 10)
        case 5: return (1 << 20) - dice.below(2)
        case 6...8: return 65_536 + dice.below(300_000)
        case 9...12: return 4096 + dice.below(60_000)
        default: return 16 + dice.below(4000)
        }
    }

    /// Where in the noise its body begins.
    func start(_ version: Int, _ language: Language) -> Int {
        Int(mixed(trait(8) &+ UInt64(version) &* 977 &+ UInt64(language.rawValue)) % UInt64(Noise.period))
    }

    /// nil: it has none.
    func entityTag(_ version: Int, _ language: Language) -> String? {
        switch validator {
        case .tag, .both: "\"\(number)-\(version)-\(language)\""
        case .date, .none: nil
        }
    }

    /// nil: it is not said.
    func lastModified(_ version: Int) -> String? {
        switch validator {
        case .date, .both: httpDate(Date(timeIntervalSince1970: 1_700_000_000 + Double(version)))
        case .tag, .none: nil
        }
    }

    /// Of which representations these bytes could be a piece: to tell in a failure's message what was mixed up.
    static func origins(of sample: ArraySlice<UInt8>, among count: Int, versionMax: Int) -> [String] {
        guard let position = Noise.position(of: sample) else {
            return sample.allSatisfy { $0 == 0 } ? ["zeros"] : ["nothing the origin ever served"]
        }
        var result: [String] = []
        for number in 0..<count {
            let resource = Resource(number: number)
            for version in 0...versionMax {
                for language in Language.allCases {
                    let offset = (position + Noise.period - resource.start(version, language)) % Noise.period
                    if offset < resource.length(version, language) {
                        result.append("\(resource.path) version \(version) \(language) offset \(offset)")
                    }
                }
            }
        }
        return result
    }
}

enum Language: Int, CaseIterable, Sendable { case en, de }

private let dates = Locked(
    {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format
    }())

func httpDate(_ date: Date) -> String { dates.withLock { $0.string(from: date) } }
