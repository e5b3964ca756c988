import Framing
import Message

/// Keeps secrets in URIs out of the log: values of query parameters whose names are those of credentials.
package enum LogScrubbing {
    /// Names of parameters with secret values, in lower case. Case does not matter.
    private static let secretNames: [StaticString] = [
        "access_token", "api_key", "apikey", "auth", "code", "key", "passwd", "password", "secret", "sig", "signature",
        "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-signature",
    ]

    /// Calls `put` with each byte of the target, and with the bytes of `***` in place of each secret.
    package static func append(_ target: borrowing Span<UInt8>, _ put: (UInt8) -> Void) {
        var start = 0
        while start < target.count, target[start] != 0x3F {
            put(target[start])
            start += 1
        }
        guard start < target.count else { return }
        put(0x3F)
        start += 1
        while true {
            var end = start
            while end < target.count, target[end] != 0x26 { end += 1 }
            append(target, parameter: start..<end, put)
            guard end < target.count else { return }
            put(0x26)
            start = end + 1
        }
    }

    private static func append(_ target: borrowing Span<UInt8>, parameter: Range<Int>, _ put: (UInt8) -> Void) {
        var equals = parameter.lowerBound
        while equals < parameter.upperBound, target[equals] != 0x3D { equals += 1 }
        guard equals < parameter.upperBound, isSecret(target, parameter.lowerBound..<equals) else {
            for index in parameter { put(target[index]) }
            return
        }
        for index in parameter.lowerBound...equals { put(target[index]) }
        for _ in 0..<3 { put(0x2A) }
    }

    private static func isSecret(_ target: borrowing Span<UInt8>, _ name: Range<Int>) -> Bool {
        for secret in secretNames where matches(target, name, secret) { return true }
        return false
    }
}
