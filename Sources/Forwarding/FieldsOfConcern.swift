package import Message

/// Fields that take a request off the shortest way, as masks that are worked out once.
package struct FieldsOfConcern {
    /// About the framing, the way, the client, or what it takes from a cache.
    package let always: UInt64
    /// About the connection: off the way unless all they say is that it stays.
    package let connection: UInt64

    package init() {
        let always: FieldNameSet = [
            .te, .trailer, .transferEncoding, .upgrade, .contentLength, .expect, .via, .maxForwards,
            .proxyAuthorization,
            .http2Settings, .larderPolicy, .authorization, .range, .ifMatch, .ifUnmodifiedSince, .ifNoneMatch,
            .ifModifiedSince, .ifRange, .cacheControl, .pragma, .xHTTPMethod, .xHTTPMethodOverride, .xMethodOverride,
        ]
        let connection: FieldNameSet = [.connection, .proxyConnection, .keepAlive]
        self.always = always.bits
        self.connection = connection.bits
    }

    /// Every `Connection` and `Proxy-Connection` line says `keep-alive` and no more.
    package static func onlyKeepsAlive(_ fields: FieldSection, _ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for line in fields.lines {
            switch line.name {
            case .connection, .proxyConnection:
                let (start, end) = (Int(line.valueStart), Int(line.valueEnd))
                guard end - start == 10, end <= bytes.count else { return false }
                for index in 0..<10 where unsafe bytes[start + index] | 0x20 != keepAlive[index] { return false }
            default: continue
            }
        }
        return true
    }

    private static let keepAlive = Array("keep-alive".utf8)
}
