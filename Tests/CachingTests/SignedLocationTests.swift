import Caching
import Message
import Testing

@Suite("A redirect to a signed address lives no longer than the signature")
struct SignedLocationTests {
    /// An instant in the form of signatures, so many seconds from `noon`.
    private static let now = noon.secondsSinceEpoch
    private static let sign = "0123456789abcdef0123456789abcdef"

    /// Where the redirect leads, and for how many of its 86,400 seconds it is fresh.
    static let rows: [(location: String, status: UInt16, lifetime: Int64)] = [
        ("https://a/x", 302, 86_400), ("https://a/x?v=1", 302, 86_400), ("https://a/x?token=short", 302, 86_400),
        ("https://a/x?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=19941106T084937Z&X-Amz-Expires=300", 302, 300),
        ("https://a/x?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=19941106T084837Z&X-Amz-Expires=300", 307, 240),
        ("https://a/x?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=19941106T084837Z&X-Amz-Expires=30", 302, 0),
        ("https://a/x?Signature=a&Key-Pair-Id=b&Policy=c", 302, 60),
        ("/x?sig=\(sign)&sv=2024&se=1994-11-06T09%3A49%3A37Z", 302, 3600),
        ("https://a/x?hmac=\(sign)", 302, 60), ("https://a/x?download_token=\(sign)#top", 302, 60),
        ("https://a/x?verify=\(sign)&expires=784115377", 301, 3600), ("https://a/x?sig=\(sign)&exp=5", 302, 60),
        ("https://a/x?X-Amz-Signature=a&X-Amz-Credential=b&X-Amz-Date=19941106T084937Z&X-Amz-Expires=300", 200, 86_400),
    ]

    @Test(arguments: rows) func `its lifetime ends with it, whatever the rules say`(
        _ row: (location: String, status: UInt16, lifetime: Int64)
    ) throws {
        let lines = ["Cache-Control: max-age=86400, stale-while-revalidate=600", "Location: \(row.location)"]
        let response = stored(lines, status: row.status)
        #expect(response.terms.lifetime == seconds(row.lifetime))
        let isSigned = row.lifetime < 86_400
        #expect((response.terms.staleWhileRevalidate == .zero) == isSigned)
        var handling = CacheHandling()
        handling.ttl = seconds(86_400)
        #expect(response.terms(under: handling).lifetime == seconds(row.lifetime))
        var form = StoredFormWriter()
        response.write(to: &form)
        var reader = StoredFormReader(form.finish())
        let read = try CachedResponse(from: &reader, fields: fields(lines))
        #expect(read == response && read.terms(under: handling).lifetime == seconds(row.lifetime))
        guard isSigned else { return }
        let later = noon + seconds(row.lifetime + 1)
        for use in [CacheUse.cacheFirst, .staleOnError] {
            #expect(reuse(of: read, for: get(), use: use, now: later) == .validate(.stale))
        }
    }
}
