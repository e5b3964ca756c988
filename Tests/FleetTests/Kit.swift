import Fleet
import TLS
import Testing

struct SecretHash: FleetHash {
    private let key: HMACKey

    init(secret: String = "the fleet's secret") { key = HMACKey(Array(secret.utf8)) }

    func code(_ beginning: [UInt8], _ rest: borrowing Span<UInt8>) -> [UInt8] { key.code(beginning, rest) }
}

extension FleetHash {
    func code(_ bytes: [UInt8]) -> [UInt8] { code([], bytes.span) }
}

let hash = SecretHash()
let otherHash = SecretHash(secret: "another secret")

/// SplitMix64: one seed, the same numbers.
struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// A row of a table whose values are too long for the log of the tests.
struct Named<Value: Sendable>: CustomTestStringConvertible, Sendable {
    let testDescription: String
    let value: Value

    init(_ name: String, _ value: Value) {
        testDescription = name
        self.value = value
    }
}

/// The error that a body throws, or nil.
func errorOf<Failure: Error>(_ body: () throws(Failure) -> Void) -> Failure? {
    do {
        try body()
        return nil
    } catch { return error }
}
