import Caching
import Message

// Heads and moments in the way tests write them.

/// Sun, 06 Nov 1994 08:49:37 GMT: when most of the tests happen.
let noon = WallTime(secondsSinceEpoch: 784_111_777)

func seconds(_ count: Int64) -> Seconds { Seconds(count) }

func milliseconds(_ count: Int64) -> TimeSpan { TimeSpan(ticks: count * ticksPerSecond / 1000) }

/// Field lines as written: `"Cache-Control: max-age=1"`.
func fields(_ lines: String...) -> Fields { fields(lines) }

func fields(_ lines: [String]) -> Fields {
    var result = Fields()
    for line in lines {
        let bytes = Array(line.utf8)
        let colon = bytes.firstIndex(of: 0x3A)!
        let name = bytes[..<colon]
        result.append(FieldName(spelling: name), spelling: name, trimOWS(bytes[(colon + 1)...]))
    }
    return result
}

func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

/// The lines as written.
func lines(_ fields: Fields) -> [String] {
    fields.lines.map { "\(text(fields.name(of: $0))): \(text(fields.value(of: $0)))" }
}

func get(_ lines: String...) -> CacheRequest { CacheRequest(method: .get, fields: fields(lines)) }

/// Fields by which clients ask for another method than the one in the request line.
let methodOverrides = ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"]

/// A response that was asked for and came at `noon`.
func stored(_ lines: String..., status: UInt16 = 200, policy: CachePolicy = CachePolicy()) -> CachedResponse {
    stored(lines, status: status, policy: policy)
}

func stored(_ lines: [String], status: UInt16 = 200, policy: CachePolicy = CachePolicy()) -> CachedResponse {
    CachedResponse(status: status, fields: fields(lines), requestTime: noon, responseTime: noon, policy: policy)
}

func date(_ offset: Int64) -> String {
    var bytes: [UInt8] = []
    appendHTTPDate(noon + Seconds(offset), to: &bytes)
    return text(bytes)
}

/// Reproducible random numbers (SplitMix64).
struct Seeded: RandomNumberGenerator {
    var state: UInt64
    init(_ seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
