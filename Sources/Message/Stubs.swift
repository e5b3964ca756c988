package func appendNormalisedURI(_ target: RequestTarget, of bytes: borrowing Span<UInt8>, to result: inout [UInt8]) {
    preconditionFailure("not yet")
}
package struct TargetURI: Sendable, Hashable {
    package let scheme: Scheme
    package let host: String
    package let port: UInt16
    package let pathAndQuery: [UInt8]
    package init?(_ bytes: some Collection<UInt8>) { return nil }
    package func resolving(_ reference: some Collection<UInt8>) -> TargetURI? { nil }
    package var normalised: [UInt8] { [] }
}
package struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    package init(v4: UInt32) {}
    package init(v6 high: UInt64, low: UInt64) {}
    package var isV4: Bool { true }
    package var v4: UInt32? { nil }
    package var v6: (high: UInt64, low: UInt64) { (0, 0) }
    package init?(anySpelling host: some Collection<UInt8>) {}
    package init?(strict text: some Collection<UInt8>) {}
    package var description: String { "" }
}
package func hostEndsInNumber(_ host: some Collection<UInt8>) -> Bool { false }
package func parseHTTPDate(_ value: some Collection<UInt8>, now: WallTime) -> WallTime? { nil }
package func appendHTTPDate(_ time: WallTime, to bytes: inout [UInt8]) {}
package func qualityValues(_ value: ArraySlice<UInt8>) -> [(token: ArraySlice<UInt8>, weight: Int)] { [] }
extension FieldName {
    package init(spelling: some Collection<UInt8>) { self = .other }
}
extension Method {
    package init(token: some Collection<UInt8>) { self = .other }
}
