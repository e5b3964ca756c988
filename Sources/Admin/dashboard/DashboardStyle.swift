/// The style of the dashboard: two palettes, and a grid that becomes one column on a phone.
let dashboardStyle = """
    :root {
      --paper: #f7f2e9; --card: #fffdf8; --ink: #2b2620; --quiet: #7d7367; --line: #e8dfd0; --track: #efe7d9;
      --a: #55804a; --b: #c8703c; --c: #4f7ea8; --bad: #b3402f; --good: #55804a; --soft: rgba(85, 128, 74, .14);
      --shadow: 0 1px 2px rgba(60, 45, 25, .06), 0 6px 18px rgba(60, 45, 25, .05);
      --stale: #b9a23b; --revalidated: #7fae72; --collapsed: #4f9a90; --miss: #c8703c; --pass: #9a8d7c;
      --refused: #8a5a8f; --error: #b3402f; --tunnel: #4f7ea8; --opened: #3f8f8a;
    }
    @media (prefers-color-scheme: dark) {
      :root {
        --paper: #191713; --card: #23201b; --ink: #efe8dc; --quiet: #a0968a; --line: #38332b; --track: #332e27;
        --a: #8cc07d; --b: #e8935c; --c: #7fb0dc; --bad: #ec7a66; --good: #8cc07d; --soft: rgba(140, 192, 125, .16);
        --shadow: none;
        --stale: #d9c45a; --revalidated: #6c9a60; --collapsed: #5fb3a8; --miss: #e8935c; --pass: #8a7f71;
        --refused: #b98abf; --error: #ec7a66; --tunnel: #7fb0dc; --opened: #6fc2bb;
      }
    }
    * { box-sizing: border-box; }
    body {
      margin: 0 auto; max-width: 1180px; padding: 20px 20px 28px; background: var(--paper); color: var(--ink);
      font: 15px/1.45 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif;
      font-variant-numeric: tabular-nums;
    }
    header, footer, .title { display: flex; align-items: center; gap: 10px; }
    header { padding: 4px 4px 18px; }
    h1 { font: 600 28px/1 ui-serif, Georgia, "Liberation Serif", serif; margin: 0; letter-spacing: -.01em; }
    h2 { font-size: 13px; font-weight: 600; margin: 0; color: var(--quiet); letter-spacing: .01em; }
    p { margin: 0; }
    a { color: inherit; text-underline-offset: 3px; }
    code { font: 12.5px ui-monospace, "Liberation Mono", monospace; }
    .spring { flex: 1; }
    .quiet { color: var(--quiet); font-size: 13px; }
    .jar { width: 34px; height: 34px; }
    .jar .lid { fill: var(--b); } .jar .glass { fill: var(--a); } .jar .label { fill: var(--card); }
    .pill {
      font-size: 12.5px; font-weight: 600; padding: 3px 11px; border-radius: 99px; background: var(--track);
      color: var(--quiet);
    }
    .pill.good { background: var(--soft); color: var(--good); }
    .pill.bad { background: var(--bad); color: var(--card); }
    main { display: grid; grid-template-columns: repeat(6, minmax(0, 1fr)); gap: 14px; }
    .tiles { grid-column: 1 / -1; display: grid; grid-template-columns: 1.25fr 1fr 1fr 1fr; gap: 14px; }
    .tile, .card {
      background: var(--card); border: 1px solid var(--line); border-radius: 14px; box-shadow: var(--shadow);
      padding: 15px 18px; min-width: 0;
    }
    .card { grid-column: span 2; }
    .card.wide { grid-column: span 3; }
    .card.most { grid-column: span 4; }
    .card.all { grid-column: 1 / -1; }
    .stack { grid-column: span 2; display: flex; flex-direction: column; gap: 14px; min-width: 0; }
    .stack .card:last-child { flex: 1; }
    .ringed { display: flex; gap: 16px; align-items: center; }
    .big { font-size: 30px; line-height: 1.2; font-weight: 600; letter-spacing: -.02em; white-space: nowrap; }
    .big small { font-size: 16px; font-weight: 500; color: var(--quiet); letter-spacing: 0; margin-left: 3px; }
    .ring { width: 76px; height: 76px; flex: none; }
    .ring circle { fill: none; stroke: var(--track); stroke-width: 8; }
    .ring circle + circle { stroke: var(--a); stroke-linecap: round; transition: stroke-dasharray .6s ease; }
    .title { min-height: 24px; margin-bottom: 8px; }
    .key { white-space: nowrap; font-size: 12.5px; color: var(--quiet); display: inline-flex; align-items: center; gap: 5px; }
    .key::before { content: ""; width: 9px; height: 9px; border-radius: 3px; background: var(--a); }
    .key.b::before { background: var(--b); } .key.c::before { background: var(--c); }
    .chart { display: block; width: 100%; height: 140px; overflow: visible; }
    .chart path { fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; stroke-linejoin: round; }
    .chart line { stroke: var(--line); vector-effect: non-scaling-stroke; }
    .chart .a { stroke: var(--a); } .chart .b { stroke: var(--b); } .chart .c { stroke: var(--c); }
    .chart .under { fill: var(--soft); stroke: none; }
    .bar {
      height: 10px; border-radius: 5px; background: var(--track); overflow: hidden; margin: 4px 0 10px; display: flex;
    }
    .bar svg { display: block; width: 100%; height: 10px; }
    .meter rect { fill: var(--a); }
    .alarm { color: var(--bad); font-weight: 600; font-size: 14px; overflow-wrap: anywhere; }
    table { width: 100%; border-collapse: collapse; font-size: 14px; }
    td, th { padding: 5px 0; border-top: 1px solid var(--line); text-align: left; font-weight: 400; }
    tr:first-child > * { border-top: 0; }
    th { color: var(--quiet); font-size: 12.5px; }
    td + td, th + th { text-align: right; padding-left: 12px; white-space: nowrap; }
    td.url { max-width: 0; width: 60%; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
    #transfers td:nth-child(7) { font-family: ui-monospace, monospace; font-size: 12.5px; color: var(--quiet); }
    #pac-files tr > :nth-child(-n + 2) { text-align: left; white-space: normal; overflow-wrap: anywhere; }
    progress { appearance: none; width: 90px; height: 8px; border: 0; border-radius: 4px; background: var(--track); overflow: hidden; }
    progress::-webkit-progress-bar { background: var(--track); } progress::-webkit-progress-value { background: var(--a); transition: width .8s linear; }
    progress::-moz-progress-bar { background: var(--a); }
    button { font: inherit; font-size: 12.5px; color: var(--quiet); background: none; border: 1px solid var(--line); border-radius: 6px; padding: 1px 8px; cursor: pointer; }
    button:hover { color: var(--bad); border-color: var(--bad); }
    .dot { display: inline-block; width: 9px; height: 9px; border-radius: 3px; margin-right: 8px; }
    .hit { background: var(--a); fill: var(--a); } .stale { background: var(--stale); fill: var(--stale); }
    .revalidated { background: var(--revalidated); fill: var(--revalidated); }
    .collapsed { background: var(--collapsed); fill: var(--collapsed); }
    .miss { background: var(--miss); fill: var(--miss); } .pass { background: var(--pass); fill: var(--pass); }
    .refused { background: var(--refused); fill: var(--refused); }
    .error { background: var(--error); fill: var(--error); }
    .tunnel { background: var(--tunnel); fill: var(--tunnel); }
    .opened { background: var(--opened); fill: var(--opened); }
    .zero { color: var(--quiet); }
    footer { padding: 18px 6px 0; gap: 14px; }
    .asleep main { opacity: .45; transition: opacity .4s; }
    @media (max-width: 900px) {
      #transfers tr > :nth-child(7) { display: none; }
      .tiles { grid-template-columns: 1fr 1fr; }
      .card { grid-column: span 3; } .card.wide, .card.most { grid-column: 1 / -1; }
      .stack { grid-column: span 3; }
    }
    @media (max-width: 560px) {
      body { padding: 14px 12px 22px; }
      main, .tiles { gap: 10px; }
      .card, .stack, .card.wide, .card.most { grid-column: 1 / -1; }
      .stack { gap: 10px; } .title { flex-wrap: wrap; row-gap: 0; }
      td.url { width: 44%; }
      .tile, .card { padding: 13px 14px; border-radius: 12px; }
      .big { font-size: 23px; }
      .ringed { gap: 10px; } .ring { width: 52px; height: 52px; }
      #uptime { display: none; }
      footer { flex-wrap: wrap; }
    }
    @media (prefers-reduced-motion: reduce) { * { transition: none !important; } }
    """
