from semantic_kernel import Kernel
from semantic_kernel.contents import ChatHistory, FunctionCallContent
from semantic_kernel.functions import kernel_function

from ..tools import Answer, Function


async def make(function: Function) -> Answer:
    kernel = Kernel()
    kernel.add_function("bench", kernel_function(name=function.__name__)(function))
    name = f"bench-{function.__name__}"

    async def answer(text: str) -> str:
        history = ChatHistory()
        await kernel.invoke_function_call(FunctionCallContent(id="1", name=name, arguments=text), history)
        return str(history.messages[-1].items[0].result)

    return answer
