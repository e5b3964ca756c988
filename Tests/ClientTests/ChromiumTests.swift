import Foundation
import Testing

@Suite(
    "Chromium",
    .enabled(
        if: Nginx.isInstalled && installed("curl") != nil && installed("chromium") != nil
            && installed("certutil") != nil,
        "packages chromium, libnss3-tools, nginx-light"))
struct ChromiumTests {
    /// The first start makes Chromium's own database of certificates, so setup.sh finds one.
    @Test func `it shows pages of an opened host after setup.sh, and not before`() async throws {
        try await Workplace.with { place in
            let host = try await ProxiedHost.start(in: place)
            try place.write("www/page.html", "<html><body>made for a test</body></html>".utf8)
            let before = try await page(host, "true")
            #expect(!before.out.contains("made for a test"), "\(before)")
            #expect(host.nginx.asked("/page.html").isEmpty)

            let setUp =
                "curl -q -fsS \(host.larder.url)/setup.sh | sh -s -- --user --ca-sha256 \(try await host.fingerprint())"
            for _ in 1...2 {
                let after = try await page(host, "\(setUp) >&2 && . $HOME/.profile")
                #expect(after.out.contains("made for a test"), "\(after)")
            }
            #expect(host.nginx.asked("/page.html").count == 1)
        }
    }

    /// The page as the browser of this user sees it, after a command of the shell.
    private func page(_ host: ProxiedHost, _ preparation: String) async throws -> Workplace.Output {
        let browser = "timeout 50 chromium --headless --no-sandbox --disable-gpu --proxy-server=\(host.larder.url)"
        return try await host.place.run(
            "sh", ["-c", "\(preparation); exec \(browser) --dump-dom \(host.url)/page.html"], within: .seconds(100))
    }
}
