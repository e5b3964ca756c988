import Interception
import Message
import Testing

@Suite("Origins that ask for a certificate of the client")
struct CertificateRequestsTests {
    /// - Parameter change: by how much the wall clock was set meanwhile.
    static func at(_ seconds: Int64, clockAhead change: Int64 = 0) -> Moment {
        Moment(uptime: .seconds(50 + seconds), wallTime: WallTime(secondsSinceEpoch: 1_000_000 + seconds + change))
    }

    @Test func `an origin is required to get one once it has ended a connection without one`() {
        var requests = CertificateRequests()
        requests.noteRequest(by: "a.test", now: Self.at(0))
        #expect(
            requests.list(now: Self.at(0)).map(\.entry) == [
                .init(count: 1, isRequired: false, lastAt: Self.at(0).wallTime)
            ])
        let news = (1...2).map { requests.noteRefusal(by: "a.test", now: Self.at($0)) }
        #expect(news == [true, false])
        requests.noteRequest(by: "a.test", now: Self.at(5))
        #expect(
            requests.list(now: Self.at(5)).map(\.entry) == [
                .init(count: 2, isRequired: true, lastAt: Self.at(5).wallTime)
            ])
    }

    @Test func `it is forgotten after a day, and is news again`() {
        var requests = CertificateRequests()
        requests.noteRequest(by: "a.test", now: Self.at(0))
        _ = requests.noteRefusal(by: "a.test", now: Self.at(0))
        #expect(requests.list(now: Self.at(86_399)).count == 1)
        #expect(requests.list(now: Self.at(86_400)).isEmpty)
        let isNews = requests.noteRefusal(by: "a.test", now: Self.at(86_400))
        #expect(isNews)
        #expect(requests.list(now: Self.at(86_400)).map(\.entry.count) == [1])
    }

    @Test func `the latest comes first, and the oldest make room`() {
        var requests = CertificateRequests(countMax: 8)
        for number in 0..<9 { requests.noteRequest(by: "\(number).test", now: Self.at(Int64(number))) }
        #expect(requests.list(now: Self.at(9)).map(\.host) == (2..<9).reversed().map { "\($0).test" })
    }
}
