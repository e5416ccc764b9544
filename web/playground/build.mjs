// Bundles GraphiQL into dist/, which is committed and embedded in the server. With
// --check it builds in memory and fails where dist/ differs.
import { build } from "esbuild";
import { readFile, readdir, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const dist = join(import.meta.dirname, "dist");

const { outputFiles } = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: { playground: "src/main.jsx" },
  outdir: dist,
  bundle: true,
  write: false,
  minify: true,
  format: "iife",
  target: ["chrome109", "firefox115", "safari16"],
  jsx: "automatic",
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".woff2": "dataurl", ".woff": "empty" },
  legalComments: "eof",
});

const files = new Map(outputFiles.map((f) => [f.path.slice(dist.length + 1), Buffer.from(f.contents)]));
files.set("index.html", await readFile(join(import.meta.dirname, "src/index.html")));

if (process.argv.includes("--check")) {
  const wrong = [];
  for (const [name, content] of files) {
    const committed = await readFile(join(dist, name)).catch(() => null);
    if (committed === null || !content.equals(committed)) wrong.push(name);
  }
  for (const name of await readdir(dist)) {
    if (!files.has(name)) wrong.push(name);
  }
  if (wrong.length > 0) {
    console.error(`dist/ is not what src/ builds: ${wrong.join(", ")}. Run: npm run build`);
    process.exit(1);
  }
  console.log(`dist/ is what src/ builds (${files.size} files)`);
} else {
  await mkdir(dist, { recursive: true });
  for (const [name, content] of files) {
    await writeFile(join(dist, name), content);
    console.log(`${name}\t${content.length} bytes`);
  }
}
