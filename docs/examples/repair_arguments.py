import json

import anyio

import harbor_async as ha
from harbor_async.export import repair


@ha.tool(side_effect=ha.SideEffect.READ)
async def read_files(files: list[str], note: str = "") -> int:
    """Read files."""
    return len(files)


AS_TEXT = json.dumps({"files": '["a.txt", "b.txt"]', "note": '["kept"]'})
IN_A_FENCE = '```json\n{"files": ["a.txt"]}\n```'
CUT_OFF = '{"files": ["a.txt"'


async def main() -> None:
    catalog = ha.Catalog([read_files])
    for repairer in (None, repair):
        print("with repair:" if repairer else "without:")
        async with ha.Runtime(catalog, repair=repairer) as rt:
            for arguments in (AS_TEXT, IN_A_FENCE, CUT_OFF):
                result = await rt.invoke("read_files", arguments)
                rules = [f"{each.rule} at {each.path!r}" for each in result.repairs]
                print(" ", result.value if result.error is None else result.error.message, *rules)


if __name__ == "__main__":
    anyio.run(main)
